"""Where calls come in. Each door is thin: it turns its own words into a Call and a Result into its own words."""
