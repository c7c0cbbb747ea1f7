# SPDX-License-Identifier: BSD-2-Clause
# Habits of the sources: a licence line, files of a length that can be read, tabs, none of the
# functions that cannot be used safely, none of the assertions that cmocka 2 deprecates, and comments
# that name only files that exist.
set -u
cd "$(dirname "$0")/../.." || exit 1
status=0
# A file that is longer for a reason: the public interface reads as one document.
find lib daemon tools mpi tests examples -name '*.[ch]' -exec awk -v most=600 '
	function end_of_file() {
		if (lines > most && file != "lib/include/collnet/collnet.h") {
			print file ": " lines " lines; " most " at most"
			bad = 1
		}
	}
	FNR == 1 {
		end_of_file()
		file = FILENAME
		if (!/SPDX-License-Identifier: BSD-2-Clause/) {
			print file ": the first line is not the licence"
			bad = 1
		}
	}
	{ lines = FNR }
	END {
		end_of_file()
		exit bad
	}
' {} + || status=1
if grep -rnE '\<(atoi|atol|strcpy|strcat|sprintf|gets|alloca|system|popen|strtok|rand|srand)\(' \
	--include='*.[ch]' lib daemon tools mpi examples; then
	echo "these functions are not used here"
	status=1
fi
if grep -rnE '^ {8}' --include='*.[ch]' lib daemon tools mpi examples; then
	echo "these lines are indented by spaces"
	status=1
fi
# cmocka 2 has one name for signed and one for unsigned numbers; configure.ac defines the one used here.
if grep -rnE '\<(assert|expect)_(not_)?(in_range|in_set|value)(_count)?\(' --include='*.[ch]' tests; then
	echo "tests: cmocka 2 deprecates these"
	status=1
fi
# Comments name files by any end of their path: kary.c, bcast/kary.c. Placeholders are x.c, test_x.c and
# names in capitals; config.h is generated; a wildcard, <system.h> or $variable is not a file's name.
{
	find lib daemon tools mpi tests man examples -type f
	echo config.h
	find lib daemon tools mpi tests -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.mk' -o \
		-name '*.awk' \) | sed 's/^/@/'
} | awk '
	function check(text, place,    name) {
		while (match(text, /[A-Za-z0-9_\/.*<${}%-]+\.(awk|mk|sh|c|h)/)) {
			name = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			if (text ~ /^[A-Za-z0-9_*]/ || name ~ /[*<${}%]|^[.\/]/ ||
			    name ~ /(^|\/)(test_)?(x|[A-Z]+)\./ || name in known) {
				continue
			}
			print place ": its comment names " name ", which does not exist"
			bad = 1
		}
	}
	/^@/ {
		file = substr($0, 2)
		inside = line = 0
		while ((getline text <file) > 0) {
			line++
			if (file !~ /\.[ch]$/) {
				if (text ~ /^[ \t]*#/) {
					check(text, file ":" line)
				}
				continue
			}
			while (text != "") {
				if (inside && (end = index(text, "*/")) > 0) {
					check(substr(text, 1, end - 1), file ":" line)
					text = substr(text, end + 2)
					inside = 0
				} else if (inside) {
					check(text, file ":" line)
					text = ""
				} else if ((begin = index(text, "/*")) > 0) {
					text = substr(text, begin + 2)
					inside = 1
				} else {
					text = ""
				}
			}
		}
		close(file)
		next
	}
	{
		known[$0] = 1
		for (name = $0; (slash = index(name, "/")) > 0;) {
			name = substr(name, slash + 1)
			known[name] = 1
		}
	}
	END { exit bad }
' || status=1
exit $status
