"""The function that tool.yml names. It may import anything its interpreter has."""

from collections import Counter


def run(text, top):
    words = text.lower().split()
    return {"words": len(words), "most_frequent": [word for word, _ in Counter(words).most_common(top)]}
