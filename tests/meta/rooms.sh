# SPDX-License-Identifier: BSD-2-Clause
# Arrows point one way: what a room of the library uses from elsewhere is in the rooms below it or
# on a short list of the C library's functions. So the pure rooms have no sockets, clocks, threads
# or randomness, and the transport no files either.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
status=0

memory="malloc calloc realloc free"
strings="memcpy memmove memset memcmp memchr strcmp strncmp strlen strnlen strchr strrchr
	strstr strspn strcspn"
# What the compiler puts there, and what fortification calls instead.
compiler="_GLOBAL_OFFSET_TABLE_ __stack_chk_fail __memcpy_chk __memmove_chk __memset_chk
	__snprintf_chk __vsnprintf_chk __fprintf_chk __assert_fail abort __sprintf_chk"
text="snprintf vsnprintf"
sort="qsort bsearch"
files="fopen fclose fread fwrite fputs fputc fprintf ferror feof fflush getc getline
	__errno_location strerror"

archive() {
	case $1 in
	plan | shared | sim) echo "$BUILD/tools/.libs/libcn_$1.a" ;;
	*) echo "$BUILD/lib/.libs/libcn_$1.a" ;;
	esac
}

# room NAME "ROOMS BELOW" ALLOWED...
room() {
	name=$1 below=$2
	shift 2
	archive=$(archive "$name")
	objects=$(ar t "$archive" | wc -l)
	if [ "$objects" -eq 0 ]; then
		echo "libcn_$name is empty"
		status=1
		return
	fi
	{
		printf '%s\n' $memory $strings $compiler "$@"
		nm --defined-only -g "$archive"
		for b in $below; do
			nm --defined-only -g "$(archive "$b")"
		done
	} 2>/dev/null | awk 'NF { print $NF }' | sort -u >"$t/allowed"
	nm -u "$archive" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u >"$t/used"
	comm -23 "$t/used" "$t/allowed" >"$t/wrong"
	if [ -s "$t/wrong" ]; then
		echo "${archive#"$BUILD"/} uses what it must not:" $(cat "$t/wrong")
		status=1
	fi
}

room util "" $text $sort
room proto "util" $text
room topo "util" $text $sort $files
room sched "topo util" $text $sort
room coll "sched proto topo util" $text $sort
room sim "coll sched proto topo util" $text $sort
room plan "shared sched topo util" $text $sort $files putc fputs sqrt __sprintf_chk
exit $status
