# SPDX-License-Identifier: BSD-2-Clause
# The numbers in the text of collnet_experiments(7), computed from its tables: reads the page, writes
# it with every line after a line `.\" text TEMPLATE` replaced by the template, in which {NAME} is
# the value of that name. tools/experiments --text runs it, and a test compares.
#
# Run with the page twice: the tables are read first.

# A word of the row whose first words are `key`, before numbers; a negative column counts from the
# end.
function cell(table, key, column,    i, n, words, found) {
	for (i = 1; i <= rows[table]; i++) {
		if (index(row[table, i], key " ") != 1 ||
		    substr(row[table, i], length(key) + 2) !~ /^[0-9-]/)
			continue
		if (found++)
			fatal("table " table " has two rows '" key "'")
		n = split(row[table, i], words, " ")
		value_found = words[column > 0 ? column : n + 1 + column]
	}
	if (!found)
		fatal("table " table " has no row '" key "'")
	return value_found
}

function fatal(text) {
	print "experiments: " text >"/dev/stderr"
	failed = 1
	exit 1
}

# Sets of numbers, for their range.
function reset() { count = 0 }
function add(x) {
	low = count == 0 || x < low ? x : low
	high = count == 0 || x > high ? x : high
	count++
}
function range(decimals) { return sprintf("%.*f to %.*f", decimals, low, decimals, high) }

# Lines of the table of exchanges: "SHAPE [paper %] LINE"; the paper's percentage is left out of
# the key.
function best(shape, line) { return cell("exchange", shape " " line, -5) + 0 }

function exchange(    i, n, shapes, s) {
	n = split("8x2 8x3 6x4 8x4", shapes, " ")
	reset()
	for (i = 1; i <= n; i++) {
		add(best(shapes[i], "sync+GW+CA"))
		add(best(shapes[i], "sync+GW+CA@412mbit"))
	}
	v["both"] = range(1)
	reset()
	for (i = 1; i <= n; i++)
		if (shapes[i] != "8x3")
			add(best(shapes[i], "sync+GW+CA") - best(shapes[i], "sync+GW"))
	v["alone-gigabit"] = sprintf("%.1f", high)
	v["alone-8x3"] = sprintf("%.1f", best("8x3", "sync+GW"))
	v["alone-8x3-lost"] = cell("exchange", "8x3 sync+GW", -3)
	reset()
	for (i = 1; i <= n; i++)
		add(best(shapes[i], "sync+GW@412mbit"))
	v["window-alone"] = range(1)
	reset()
	for (i = 1; i <= n; i++) {
		add(best(shapes[i], "pair"))
		add(best(shapes[i], "pair@412mbit"))
	}
	v["pairwise-most"] = sprintf("%.0f", high)
	reset()
	for (i = 1; i <= n; i++)
		add(best(shapes[i], "pair+CA") - best(shapes[i], "pair"))
	v["numbers-gigabit"] = range(1)
	for (i = 1; i <= n; i++) {
		s = shapes[i]
		v["pairwise-" s] = sprintf("%.1f", best(s, "pair@412mbit"))
		v["pairwise-numbers-" s] = sprintf("%.1f", best(s, "pair+CA@412mbit"))
	}
	# The paper counts payload, and a frame of 1,538 bytes carries 1,476 of it.
	reset()
	for (i = 1; i <= n; i++)
		add(best(shapes[i], "sync+GW+CA@412mbit") * 1476 / 1538 - paper[shapes[i]])
	v["nearer"] = range(0)
	for (i = 2; i <= n; i++)
		v["root-" shapes[i]] = sprintf("%.1f", best(shapes[i], "sync+GW+CA@412mbit root 45"))
	v["root-lost"] = cell("exchange", "8x4 sync+GW+CA@412mbit root 45", -3)
}

function flows(    i, n, pairs) {
	v["one-switch"] = sprintf("%.1f", cell("flows", "10", 2) / cell("flows", "1", 2))
	v["gigabit-share"] = sprintf("%.0f", cell("flows", "10", 3) / 250 * 100)
	n = split("4 6 8 10", pairs, " ")
	reset()
	for (i = 1; i <= n; i++)
		add(100 - cell("flows", pairs[i], 4) / 103 * 100)
	v["flows-less"] = range(0)
}

# How far the second number is from the first, in percent of the first, as a distance.
function off(a, b) { return a > b ? (a - b) / a * 100 : (b - a) / a * 100 }

function aapc(    f, i, t, sizes, n, key) {
	n = split("8 16 32 64 128 256", sizes, " ")
	for (f = 7; f <= 8; f++) {
		t = "aapc-" f
		reset()
		for (i = 1; i <= n; i++) {
			if (cell(t, sizes[i] " KiB", 4) > 0) # else it failed
				add(off(cell(t, sizes[i] " KiB", 3), cell(t, sizes[i] " KiB", 4)))
		}
		v["lam-" f] = sprintf("%.0f", high)
	}
	reset()
	for (f = 7; f <= 8; f++)
		for (i = 1; i < n; i++)
			add(off(cell("aapc-" f, sizes[i] " KiB", 5), cell("aapc-" f, sizes[i] " KiB", 6)))
	v["mpich-short"] = sprintf("%.0f", high)
	reset()
	for (f = 7; f <= 8; f++)
		add((cell("aapc-" f, "256 KiB", 6) / cell("aapc-" f, "256 KiB", 5) - 1) * 100)
	v["mpich-long"] = range(0)
	reset()
	for (f = 7; f <= 8; f++)
		for (i = 1; i <= n; i++)
			add((1 - cell("aapc-" f, sizes[i] " KiB", 8) / cell("aapc-" f, sizes[i] " KiB", 7)) * 100)
	v["aapc-less"] = range(0)
	reset()
	for (f = 6; f <= 8; f++)
		for (i = 1; i <= n; i++)
			add((cell("aapc-" f, sizes[i] " KiB", 8) / cell("aapc-" f, sizes[i] " KiB", 10) - 1) * 100)
	v["aapc-above"] = range(0)
	reset()
	for (i = 4; i <= n; i++)
		for (f = 3; f <= 7; f += 2)
			add(cell("aapc-6", sizes[i] " KiB", f) / cell("aapc-6", sizes[i] " KiB", 10))
	v["one-switch-paper"] = range(1)
	reset()
	for (f = 6; f <= 8; f++)
		for (i = 1; i <= n; i++)
			add((cell("aapc-" f, sizes[i] " KiB", 9) / cell("aapc-" f, sizes[i] " KiB", 10) - 1) * 100)
	v["shuffle-above"] = sprintf("%.1f", high)
}

function rings(    i, n, sizes, lr1) {
	lr1 = cell("rings", "LR1, (f), paper:", 4)
	v["ring"] = sprintf("%.1f", cell("rings", "(f)", 4) / cell("rings", "(f)", 2))
	v["tree"] = sprintf("%.1f", cell("rings", "(f)", 5) / cell("rings", "(f)", 2))
	v["paper-ring"] = sprintf("%.1f", cell("rings", "MPICH, (f), paper:", 4) / lr1)
	v["paper-tree"] = sprintf("%.1f", cell("rings", "LAM, (f), paper:", 4) / lr1)
	n = split("32 48 64 96 128", sizes, " ")
	reset()
	for (i = 1; i <= n; i++)
		add((cell("rings_1", sizes[i] " KiB", 3) / cell("rings_1", sizes[i] " KiB", 7) - 1) * 100)
	v["paper-path"] = range(0)
	reset()
	for (i = 1; i <= n; i++)
		add(off(cell("rings_1", sizes[i] " KiB", 8), cell("rings_1", sizes[i] " KiB", 4)))
	v["path"] = sprintf("%.1f", high)
}

function smp(    i, words) {
	reset()
	for (i = 3; i <= rows["smp"]; i++) { # after two lines of header
		split(row["smp", i], words, " ")
		add(words[6])
	}
	v["saved-ordered"] = range(0)
	reset()
	for (i = 3; i <= rows["smp"]; i++) {
		split(row["smp", i], words, " ")
		add(words[10])
	}
	v["saved-dealt"] = range(0)
}

function limits(    i, n, hosts) {
	reset()
	add(100 - cell("loss", "1.0", 4))
	add(100 - cell("loss", "1.0", 5))
	v["loss-long"] = range(1)
	v["loss-short"] = sprintf("%.0f", (cell("loss", "0.0", 3) / cell("loss", "1.0", 3) - 1) * 100)
	n = split("4 8 16 32 64 128 256 512 1024", hosts, " ")
	reset()
	for (i = 1; i <= n; i++)
		add(cell("scale", hosts[i], 2))
	v["scale-one"] = sprintf("%.1f", high - low)
	reset()
	for (i = 3; i <= n; i++)
		add(cell("scale", hosts[i], 2) - cell("scale", hosts[i], 5))
	v["scale-switches"] = sprintf("%.1f", high)
}

function fill(template,    out, name) {
	while (match(template, /\{[a-z0-9-]+\}/)) {
		name = substr(template, RSTART + 1, RLENGTH - 2)
		if (!(name in v))
			fatal("no value '" name "'")
		used[name] = 1
		out = out substr(template, 1, RSTART - 1) v[name]
		template = substr(template, RSTART + RLENGTH)
	}
	return out template
}

FNR == 1 {
	pass++
	if (pass == 2) {
		exchange()
		flows()
		aapc()
		rings()
		smp()
		limits()
	}
}

pass == 1 && /^\.\\" table / {
	table = $3
	next
}
pass == 1 && /^\.\\" end/ { table = "" }
pass == 1 && table != "" && !/^\./ {
	line = $0
	gsub(/[ \t]+/, " ", line)
	sub(/^ /, "", line)
	if (table == "exchange" && match(line, / [0-9]+ % /)) {
		paper[$1] = substr(line, RSTART + 1) + 0
		line = substr(line, 1, RSTART) substr(line, RSTART + RLENGTH)
	}
	row[table, ++rows[table]] = line
	next
}
pass == 2 && replace {
	replace = 0
	next
}
pass == 2 { print }
pass == 2 && /^\.\\" text / {
	print fill(substr($0, 10))
	replace = 1
}

END {
	if (!failed) {
		for (name in v)
			if (!(name in used)) {
				print "experiments: the page does not use '" name "'" >"/dev/stderr"
				failed = 1
			}
	}
	exit failed
}
