# SPDX-License-Identifier: BSD-2-Clause
# Habits of the sources: a licence line, files of a length that can be read, tabs, and none of the
# functions that cannot be used safely.
set -u
cd "$(dirname "$0")/../.." || exit 1
status=0
# Files that are longer for a reason: the public interface reads as one document.
long="lib/include/collnet/collnet.h"
for f in $(find lib daemon tools mpi tests examples -name '*.[ch]' 2>/dev/null); do
	head -n 1 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || {
		echo "$f: the first line is not the licence's"
		status=1
	}
	lines=$(wc -l <"$f")
	most=600
	case " $long " in *" $f "*) ;; *)
		[ "$lines" -le $most ] || {
			echo "$f: $lines lines; $most at most"
			status=1
		} ;;
	esac
done
for f in $(find lib daemon tools mpi examples -name '*.[ch]' 2>/dev/null); do
	if grep -nE '\<(atoi|atol|strcpy|strcat|sprintf|gets|alloca|system|popen|strtok|rand|srand)\(' "$f"; then
		echo "$f: uses what is not used here"
		status=1
	fi
	if grep -nE '^ {8}' "$f"; then
		echo "$f: indented by spaces"
		status=1
	fi
done
exit $status
