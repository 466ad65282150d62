#!/bin/sh
# Prints file, line number and line for each match. The arguments come from tool.yml.
grep -rnF --exclude-dir=.git --exclude-dir=.glee -e "$1" -- "$2" && exit 0
[ $? -eq 1 ] || exit 2
echo "nothing found"
