# SPDX-License-Identifier: BSD-2-Clause
# The sources are formatted as .clang-format says, and no line but one with a string is longer than
# 100 columns. Releases of clang-format differ in detail; the sources follow release 14.
set -u
cd "$(dirname "$0")/../.." || exit 1
status=0
files=$(find lib daemon tools mpi tests examples -name '*.[ch]')

awk '{
		width = 0
		n = split($0, part, "\t")
		for (i = 1; i < n; i++) {
			width += length(part[i])
			width += 8 - width % 8
		}
		width += length(part[n])
	}
	width > 100 && !/"/ {
		print FILENAME ":" FNR ": longer than 100 columns"
		bad = 1
	}
	END { exit bad }
' $files || status=1

format=
for c in clang-format-14 clang-format; do
	if $c --version 2>/dev/null | grep -q 'version 14\.'; then
		format=$c
		break
	fi
done
if [ -z "$format" ]; then
	[ $status -eq 0 ] || exit $status
	echo "skip: clang-format 14 is not installed"
	exit 77
fi
wrong=$($format --dry-run -Werror $files 2>&1 | grep error: | sort -u -t : -k 1,1)
if [ -n "$wrong" ]; then
	echo "$wrong"
	echo "run: $format -i FILE"
	status=1
fi
exit $status
