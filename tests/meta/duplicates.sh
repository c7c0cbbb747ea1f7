#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# No seven lines of code (about ten with their braces) stand twice in lib, daemon or tools: a change
# to one would miss the other.
# Compared are lines of code alone: comments, blank lines, #includes and lines of mere punctuation
# are passed over, and white space is folded. Files from elsewhere may be named instead, to try it.
cd "$(dirname "$0")/../.." || exit 1

# FILE FILE reason: pairs of files that may have lines in common.
exceptions='
'

[ $# -gt 0 ] || set -- $(find lib daemon tools -name '*.[ch]' | sort)
awk -v lines=7 -v exceptions="$exceptions" '
BEGIN {
	n = split(exceptions, rows, "\n")
	for (i = 1; i <= n; i++) {
		split(rows[i], word, " ")
		allowed[word[1] " " word[2]] = allowed[word[2] " " word[1]] = word[1] != ""
	}
}
FNR == 1 {
	count = comment = 0
	files++
}
{
	line = $0
	if (comment) {
		if (!sub(/^.*\*\//, "", line)) {
			next
		}
		comment = 0
	}
	gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
	sub(/\/\/.*/, "", line)
	if (sub(/\/\*.*/, "", line)) {
		comment = 1
	}
	gsub(/[ \t]+/, " ", line)
	gsub(/^ | $/, "", line)
	if (line !~ /[A-Za-z0-9]/ || line ~ /^# ?include/ || line ~ /^(break|default:|else|\} else \{);?$/) {
		next
	}
	code[count] = line
	at[count++] = FNR
	if (count < lines) {
		next
	}
	key = ""
	for (i = count - lines; i < count; i++) {
		key = key code[i] "\n"
	}
	if (!(key in seen)) {
		seen[key] = FILENAME ":" at[count - lines]
		next
	}
	split(seen[key], first, ":")
	if (!((first[1] " " FILENAME) in allowed) || !allowed[first[1] " " FILENAME]) {
		if (!(FILENAME == last && first[1] == from && FNR <= until + lines)) {
			printf "%s:%d: the %d lines of code from here stand at %s, too\n", FILENAME,
				at[count - lines], lines, seen[key]
			bad = 1
		}
		last = FILENAME
		from = first[1]
		until = FNR
	}
}
END {
	if (files < 2) {
		print "no files compared"
		bad = 1
	}
	exit bad
}' "$@" || {
	echo "give such lines one place, or name the pair and the reason in tests/meta/duplicates.sh"
	exit 1
}
