# SPDX-License-Identifier: BSD-2-Clause
# The manual can be believed: every page of section 3 has an example, and every example that is a
# whole program compiles without a warning.
set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
status=0
for page in man/*.3; do
	name=$(basename "$page" .3)
	awk -v out="$t/$name" '
		/^\.Sh / { examples = $2 == "EXAMPLES" }
		examples && /^\.Bd -literal/ { n++; file = out "." n ".c"; next }
		/^\.Ed/ { file = "" }
		file != "" { gsub(/\\e/, "\\"); gsub(/\\-/, "-"); print >file }
	' "$page"
	found=0
	for example in "$t/$name".*.c; do
		grep -q '^int main(' "$example" 2>/dev/null || continue
		found=1
		${CC:-cc} -std=c11 -Wall -Wextra -Wshadow -Werror -Ilib/include -c "$example" \
			-o "$t/example.o" || {
			echo "an example in $page does not compile"
			status=1
		}
	done
	[ $found = 1 ] || {
		echo "$page has no whole program as an example"
		status=1
	}
done
exit $status
