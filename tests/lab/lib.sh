# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For lab tests, which begin with:
#
#     . "$(dirname "$0")/lib.sh"
#
# tests/run puts collnet and collnetd in the PATH, gives a private directory (the current one, and
# TMPDIR), and sets VARIANT to plain or asan. By hand: PATH=$PWD/build/prefix/bin:... sh tests/lab/X.sh

set -u

fail() {
	echo "FAIL: $*"
	exit 1
}

skip() {
	echo "skip: $*"
	exit 77
}

# need COMMAND...: skips the test without them.
need() {
	for c; do
		command -v "$c" >/dev/null 2>&1 || skip "$c is not installed"
	done
}

# Skips the test where the system gives an ordinary user no network namespace.
need_lab() {
	need ip tc unshare collnet collnetd
	[ "$(id -u)" -eq 0 ] && return
	unshare -Urnm true 2>/dev/null || skip "this system allows no user namespaces to ordinary users"
}

# has TEXT FILE: the file has the text.
has() {
	grep -q -e "$1" "$2" || {
		cat "$2"
		fail "'$1' is not in the output above"
	}
}

# lacks TEXT FILE
lacks() {
	! grep -q -e "$1" "$2" || {
		cat "$2"
		fail "'$1' is in the output above"
	}
}

# json KEY FILE: the values of a key, one a line; enough for the flat objects that collnet prints.
json() {
	grep -o "\"$1\": *[^,}]*" "$2" | sed 's/^[^:]*: *//; s/^"//; s/"$//'
}
