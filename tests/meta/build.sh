# SPDX-License-Identifier: BSD-2-Clause
# tools/build configures again when what configure finds has changed, and only then; and a clone
# whose path autotools cannot have is refused in one line, before anything is installed. Around a
# configure and a pkg-config that only count and answer.
set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT

fail() {
	echo "FAIL: $*"
	cat "$t/out"
	exit 1
}

# clone DIR: what of the tree the script needs.
clone() {
	mkdir -p "$1/tools" "$1/tests" || exit 1
	cp tools/build tools/quickstart tools/deps "$1/tools/"
	cp tests/run "$1/tests/"
	: >"$1/configure.ac"
	: >"$1/Makefile.in"
	printf '#!/bin/sh\necho "$*" >>"%s"\nprintf "all:\\n" >Makefile\n' "$t/runs" >"$1/configure"
	chmod +x "$1/configure"
}

# builds RUNS WHAT ARGUMENT...: tools/build configures for the RUNS-th time, or not at all.
builds() {
	runs=$1 what=$2
	shift 2
	PATH=$t/bin:$PATH sh "$t/clone/tools/build" build "$@" >"$t/out" 2>&1 ||
		fail "status $?: $what"
	[ "$(wc -l <"$t/runs")" -eq "$runs" ] ||
		fail "configured $(wc -l <"$t/runs") times, not $runs: $what"
}

clone "$t/clone"
mkdir "$t/bin"
# pkg-config --modversion MODULE: the modules are files with a version.
printf '#!/bin/sh\ncat "%s/$2" 2>/dev/null\n' "$t" >"$t/bin/pkg-config"
chmod +x "$t/bin/pkg-config"
builds 1 "a new directory"
builds 1 "nothing changed"
echo 1.1.5 >"$t/cmocka"
builds 2 "cmocka was installed"
builds 2 "nothing changed"
echo 1.1.7 >"$t/cmocka"
builds 3 "another cmocka"
rm "$t/cmocka"
builds 4 "cmocka was removed"
builds 5 "other arguments" --enable-werror
printf '#!/bin/sh\necho "cc 99"\n' >"$t/bin/cc"
chmod +x "$t/bin/cc"
builds 6 "another compiler" --enable-werror
builds 6 "nothing changed" --enable-werror

# A warning of a newer compiler does not end the quick start, which ends here without a command.
(cd "$t/clone" && QUICKSTART_DEPS=no sh tools/quickstart) >"$t/out" 2>&1
[ "$(wc -l <"$t/runs")" -eq 7 ] || fail "the quick start does not configure"
! tail -n 1 "$t/runs" | grep werror >>"$t/out" || fail "warnings are errors in the quick start"

# The plot goes by the sizes, not by their order in SIZES. Around a lab and a gnuplot that only answer
# and keep.
mkdir -p "$t/clone/build/tools" "$t/clone/build/daemon"
: >"$t/clone/build/daemon/collnetd"
cat >"$t/clone/build/tools/collnet" <<'EOS'
#!/bin/sh
while [ $# -gt 0 ]; do
	[ "$1" != --sizes ] || size=${2%k}
	shift
done
for value in "bytes_per_pair\": $((${size:-0} * 1024))" 'verified": true' 'median": 1' \
	'bandwidth_mbit_per_node": 1' "efficiency\": 0.$size" 'drops_total": 0' 'frames_resent": 0' \
	'ranks": 4'; do
	echo "\"$value,"
done
EOS
cat >"$t/bin/gnuplot" <<EOS
#!/bin/sh
cat >"$t/plot"
cat "\$(sed -n 's/^plot "\([^"]*\)".*/\1/p' "$t/plot")" >"$t/points"
EOS
chmod +x "$t/clone/build/tools/collnet" "$t/bin/gnuplot"
(cd "$t/clone" && PATH=$t/bin:$PATH SIZES=16k,1k,4k QUICKSTART_DEPS=no sh tools/quickstart) >"$t/out" 2>&1 ||
	fail "the quick start, status $?"
[ "$(tr '\n' ' ' <"$t/points")" = "1024 10 4096 40 16384 16 " ] || fail "points: $(cat "$t/points")"
grep -q '^set xrange \[853.333:19660.8\]$' "$t/plot" || fail "$(grep xrange "$t/plot")"

# A compiler with arguments exists. A substitute of apt-get that does nothing installs missing packages.
mkdir "$t/apt"
for command in apt-get sudo; do
	printf '#!/bin/sh\nexit 1\n' >"$t/apt/$command"
	chmod +x "$t/apt/$command"
done
! PATH=$t/apt:$PATH CC=cc sh tools/deps build >"$t/out" 2>&1 ||
	PATH=$t/apt:$PATH CC='env cc' sh tools/deps build >"$t/out" 2>&1 || fail "CC with arguments"

# A path that cannot be. Nothing is installed: an apt-get that was called would be seen.
for name in 'with space' "quo'te" 'dol$lar'; do
	clone "$t/$name"
	for command in "tools/build build" tools/quickstart tests/run; do
		# shellcheck disable=SC2086 # a command and its argument
		(cd "$t/$name" && sh $command) >"$t/out" 2>&1 && fail "$name: $command went on"
		grep -q "special character.*move the clone" "$t/out" || fail "$name: $command"
		[ ! -d "$t/$name/build" ] || fail "$name: $command made a directory"
		[ "$command" = tests/run ] || [ "$(wc -l <"$t/out")" -eq 1 ] ||
			fail "$name: $command: not one line"
	done
	[ "$(tail -n 1 "$t/out")" = "0 passed, 1 failed, 0 skipped" ] || fail "tests/run's last line"
done
exit 0
