# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For tests of a subcommand's command line, which begin with:
#
#     . "$(dirname "$0")/lib.sh"
#
# They run in the source directory, with a private directory in $t.

set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
collnet=$PREFIX/bin/collnet

fail() {
	echo "FAIL: $*"
	cat "$t/out" "$t/err"
	exit 1
}

# ends SUBCOMMAND STATUS ARGUMENT...: `collnet SUBCOMMAND ARGUMENT...` ends with that status.
ends() {
	subcommand=$1
	expected=$2
	shift 2
	"$collnet" "$subcommand" "$@" >"$t/out" 2>"$t/err"
	got=$?
	[ $got -eq "$expected" ] || fail "status $got instead of $expected: $subcommand $*"
}

# has TEXT [FILE]: a line of the output matches.
has() {
	grep -q -e "$1" "$t/${2:-out}" || fail "'$1' is missing"
}

lacks() {
	! grep -q -e "$1" "$t/${2:-out}" || fail "'$1' is there"
}

# valid JSON, where python3 can tell, and of one line
is_json() {
	[ "$(wc -l <"$t/out")" -eq 1 ] || fail "not one line"
	command -v python3 >/dev/null || return 0
	python3 -c 'import json, sys; json.load(sys.stdin)' <"$t/out" 2>"$t/err" || fail "not JSON"
}
