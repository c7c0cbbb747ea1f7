# SPDX-License-Identifier: BSD-2-Clause
# The declarations of the Python package are those of collnet.h.
set -u
cd "$(dirname "$0")/../.." || exit 1
for package in "$PREFIX"/lib/python3*/*-packages; do
	[ -d "$package/collnet" ] || {
		echo "skip: the Python package is not installed"
		exit 77
	}
done
python=$(sed -n 's/^PYTHON = //p' "$BUILD/Makefile")
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
export LD_LIBRARY_PATH="$PREFIX/lib" PYTHONPATH="$package"
"$python" tests/meta/python.py generate >"$t/layout.c" &&
	${CC:-cc} -std=c11 -Wall -Werror -Ilib/include "$t/layout.c" -o "$t/layout" &&
	"$t/layout" >"$t/layout.txt" &&
	"$python" tests/meta/python.py compare lib/include/collnet/collnet.h <"$t/layout.txt"
