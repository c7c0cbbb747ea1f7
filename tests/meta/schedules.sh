# SPDX-License-Identifier: BSD-2-Clause
# timeout: 600
#
# collnet schedule --check, as it is installed, on random trees of 2 to 64 hosts, 30 or TREES of them
# (100 where LONG is yes).
# The phases of all-to-all and allgather, scatter and gather are as few as this script itself counts
# that there must be; and two messages of the all-to-all that change places are refused with both of
# them and the link, whenever this script finds them on it, and only then.
#
#   TREES=1000 FIRST_SEED=7 PREFIX=... sh tests/meta/schedules.sh
#
# Tree N is: collnet topo random --hosts H --switches S --seed N | collnet topo tree - --kind
# random --seed N, with H and S as hosts_of() and switches_of() say.
set -u
[ "${1:-}" = tree ] || cd "$(dirname "$0")/../.." || exit 1
self=$PWD/tests/meta/schedules.sh
collnet=$PREFIX/bin/collnet
trees=30
[ "${LONG:-no}" = no ] || trees=100
trees=${TREES:-$trees}
first=${FIRST_SEED:-1}

hosts_of() {
	echo $((2 + $1 * 29 % 63))
}

switches_of() {
	echo $((1 + $1 * 7 % 20))
}

die() {
	echo "FAIL: seed $seed: $*"
	exit 1
}

# checked OPERATION ALGORITHM ARGUMENT...: a line "seed operation algorithm phases bound".
checked() {
	"$collnet" schedule "$@" --topology "$seed.topo" --check >"$seed.out" 2>&1 ||
		die "$*: $(tail -n 1 "$seed.out")"
	[ "$(tail -n 1 "$seed.out")" = OK ] || die "$*: no OK"
	sed -n "s/^phases  *\([0-9]*\) (lower bound \([0-9]*\))\$/$seed $1 $3 \1 \2/p" \
		"$seed.out" >>"$seed.results"
}

# Two messages of different phases change places, with the order of sending and receiving of the
# phases left: without the synchronisations, only the links are to be judged. Writes what is on a
# link with another message then, as "phase N: a -> b and c -> d both use link x -> y".
cat_swap() {
	cat <<'AWK'
function up(x) { return parent[x] }
# The links of the way from a to b are collected in way[1..ways].
function route(a, b,   x, y, n, i, down) {
	ways = n = 0
	x = a
	y = b
	while (x != y) {
		if (depth[x] >= depth[y]) {
			way[++ways] = x " -> " up(x)
			x = up(x)
		} else {
			down[++n] = up(y) " -> " y
			y = up(y)
		}
	}
	for (i = n; i > 0; i--) {
		way[++ways] = down[i]
	}
}
FNR == 1 { file++ }
file == 1 && $1 == "link" { near[$2] = near[$2] " " $3; near[$3] = near[$3] " " $2 }
file == 1 && $1 == "switch" && top == "" { top = $2 }
file == 1 { next }
/ => / { next }
/^guarantees / { $0 = "guarantees links" }
/ -> / {
	sub(/, .*/, "")
	n++
	phase[n] = $2 + 0
	what[n] = substr($0, index($0, ": ") + 2)
	at[NR] = n
}
{ line[NR] = $0 }
END {
	# parents, level by level
	queue[1] = top
	depth[top] = 1
	for (head = tail = 1; head <= tail; head++) {
		k = split(near[queue[head]], list, " ")
		for (i = 1; i <= k; i++) {
			if (!(list[i] in depth)) {
				depth[list[i]] = depth[queue[head]] + 1
				parent[list[i]] = queue[head]
				queue[++tail] = list[i]
			}
		}
	}
	srand(seed)
	a = 1 + int(rand() * n)
	b = 1 + int(rand() * n)
	other = what[a]
	what[a] = what[b]
	what[b] = other
	for (i = 1; i <= n; i++) {
		if (phase[i] != phase[a] && phase[i] != phase[b]) {
			continue
		}
		split(what[i], word, " ")
		route(word[1], word[3])
		me = word[1] " -> " word[3]
		for (j = 1; j <= ways; j++) {
			key = phase[i] " " way[j]
			for (k = 1; k <= users[key]; k++) {
				print phase[i] "|" user[key, k] "|" me "|" way[j] >conflicts
				print phase[i] "|" me "|" user[key, k] "|" way[j] >conflicts
			}
			user[key, ++users[key]] = me
		}
	}
	for (i = 1; i <= NR; i++) {
		if (i in at) {
			print "phase " phase[at[i]] ": " what[at[i]]
		} else if (i in line) {
			print line[i]
		}
	}
}
AWK
}

# Spoils the all-to-all: status 1 and the right message, or OK where nothing is on a link twice.
spoilt() {
	"$collnet" schedule alltoall --topology "$seed.topo" --algorithm aapc --emit text \
		>"$seed.plan" || die "emit"
	: >"$seed.conflicts"
	awk -v seed="$seed" -v conflicts="$seed.conflicts" -f swap.awk "$seed.topo" "$seed.plan" \
		>"$seed.swapped" || die "awk"
	"$collnet" schedule alltoall --topology "$seed.topo" --schedule "$seed.swapped" --check \
		>"$seed.out" 2>"$seed.err"
	status=$?
	if [ ! -s "$seed.conflicts" ]; then
		[ $status -eq 0 ] || die "refused without a reason: $(cat "$seed.err")"
		echo harmless >>"$seed.verdicts"
		return
	fi
	[ $status -eq 1 ] || die "not refused: $(head -n 1 "$seed.conflicts")"
	# "phase 3: a -> b and c -> d both use link x -> y, which has 1 channel", or where a host
	# is the sender or the receiver of both:
	# "phase 3: a sends to b and to d, both over link a -> s", "b receives from a and from c, ..."
	message=$(sed -n \
		-e 's/^.*: phase \([0-9]*\): \(.*\) and \(.*\) both use link \(.*\), which.*/\1|\2|\3|\4/' \
		-e 's/^.*: phase \([0-9]*\): \(.*\) sends to \(.*\) and to \(.*\), both over link \(.*\)$/\1|\2 -> \3|\2 -> \4|\5/' \
		-e 's/^.*: phase \([0-9]*\): \(.*\) receives from \(.*\) and from \(.*\), both over link \(.*\)$/\1|\3 -> \2|\4 -> \2|\5/' \
		-e p <"$seed.err")
	grep -qxF -e "$message" "$seed.conflicts" ||
		die "$(cat "$seed.err"); but it should be one of: $(head -n 5 "$seed.conflicts")"
	echo refused >>"$seed.verdicts"
}

# What xargs calls, in the directory of the results.
if [ "${1:-}" = tree ]; then
	for seed in $2; do
		"$collnet" topo random --hosts "$(hosts_of "$seed")" --seed "$seed" \
			--switches "$(switches_of "$seed")" >"$seed.random" || die "topo random"
		"$collnet" topo tree "$seed.random" --kind random --seed "$seed" >"$seed.topo" ||
			die "topo tree"
		checked alltoall --algorithm aapc
		checked allgather --algorithm lr3
		case $((seed % 4)) in
		0) a=smp ;; 1) a=chain ;; 2) a=binary ;; 3) a=kary ;;
		esac
		root=$((seed % $(hosts_of "$seed")))
		checked bcast --algorithm "$a" --root "$root"
		checked scatter --algorithm furthest --root "$root"
		checked gather --algorithm nearest --root "$root"
		spoilt
		rm -f "$seed.random" "$seed.plan" "$seed.swapped" "$seed.out" "$seed.err"
	done
	exit 0
fi

t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
cd "$t" || exit 1
cat_swap >swap.awk
last=$((first + trees - 1))
echo "$trees random trees, seeds $first to $last"
# shellcheck disable=SC2016 # the inner shell expands
seq "$first" "$last" | xargs -n 25 | PREFIX=$PREFIX xargs -P "${JOBS:-2}" -I '{}' sh "$self" tree '{}' >failures
[ ! -s failures ] || {
	cat failures
	exit 1
}

# The bound of an all-to-all: of the links, the most messages that must cross one; the others'.
awk '
function below(x, from,   k, i, list, n) {
	n = x in host
	k = split(near[x], list, " ")
	for (i = 1; i <= k; i++) {
		if (list[i] != from) {
			n += below(list[i], x)
		}
	}
	if (n * (hosts - n) > most) {
		most = n * (hosts - n)
	}
	return n
}
function done() {
	most = 0
	below(top, "")
	print seed, hosts, most
}
FNR == 1 {
	if (seed != "") {
		done()
	}
	delete near
	delete host
	hosts = 0
	top = ""
	seed = FILENAME + 0
}
$1 == "switch" && top == "" { top = $2 }
$1 == "host" { host[$2]; hosts++ }
$1 == "link" { near[$2] = near[$2] " " $3; near[$3] = near[$3] " " $2 }
END { done() }' [0-9]*.topo >bounds
awk -v trees="$trees" '
FILENAME == "bounds" { hosts[$1] = $2; bound[$1] = $3; n++; next }
{
	count[$2 " " $3]++
	want = $2 == "alltoall" ? bound[$1] : hosts[$1] - 1
	if ($2 != "bcast" && ($4 != want || $5 != want)) {
		print "FAIL: seed " $1 ": " $2 " has " $4 " phases, bound " $5 ", counted here " want
		bad = 1
	}
	if ($2 == "bcast" && $4 < $5) {
		print "FAIL: seed " $1 ": bcast has " $4 " phases, less than its bound " $5
		bad = 1
	}
	total++
}
END {
	for (what in count) {
		print count[what] " times " what
	}
	if (n != trees || total != 5 * trees) {
		print "FAIL: " n " trees and " total " results"
		bad = 1
	}
	exit bad
}' bounds [0-9]*.results || exit 1
cat [0-9]*.verdicts | sort | uniq -c
[ "$(grep -hxc refused [0-9]*.verdicts | awk '{ n += $1 } END { print n }')" -gt $((trees / 2)) ] || {
	echo "FAIL: too few of the spoilt schedules are wrong"
	exit 1
}
echo ok
