# SPDX-License-Identifier: BSD-2-Clause
# Arrows between modules point one way. The test reads the undefined symbols of each module's
# archive and the #include lines of its sources.
#
# A pure module (pure) uses itself, the modules below it and a short list of functions of the C
# library: no sockets, clocks, threads or randomness, and in the transport no files either. Other
# modules (layer) may use any function of the system, but of this code base only the modules below.
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

directory() {
	case $1 in
	plan) echo tools/plan ;;
	sim) echo tools/sim/core ;;
	shared) echo tools ;;
	daemon) echo daemon ;;
	*) echo "lib/$1" ;;
	esac
}
archive() {
	case $1 in
	plan | shared | sim) echo "$BUILD/tools/.libs/libcn_$1.a" ;;
	daemon) echo "$BUILD/daemon/.libs/libcn_daemon.a" ;;
	*) echo "$BUILD/lib/.libs/libcn_$1.a" ;;
	esac
}
defined() {
	for m; do
		echo "$t/$m.defined"
	done | xargs -r sort -u
}
undefined() {
	cat "$t/$1.undefined"
}
wrong() {
	[ -s "$t/wrong" ] || return 0
	echo "$1 uses what it must not:" $(cat "$t/wrong")
	status=1
}

# includes NAME "MODULES BELOW": the module's sources include nothing of other modules. A header
# is named with its directory, after lib.
includes() {
	own=$(directory "$1") depth=2
	[ "$own" != tools ] || depth=1
	find "$own" -maxdepth $depth -name '*.[ch]' >"$t/sources"
	for m in $everything; do
		case " $1 $2 " in *" $m "*) continue ;; esac
		d=$(directory "$m") rest='.*'
		[ "$d" != tools ] || rest='[^/]*'
		xargs grep -n "^#include \"${d#lib/}/$rest\"" <"$t/sources"
	done >"$t/wrong"
	wrong "$own"
}

exists() {
	[ "$(ar t "$(archive "$1")" 2>/dev/null | wc -l)" -gt 0 ] && return
	echo "libcn_$1 is empty"
	status=1
	return 1
}

# pure NAME "MODULES BELOW" ALLOWED...
pure() {
	name=$1 below=$2
	shift 2
	exists "$name" || return
	{
		printf '%s\n' $memory $strings $compiler "$@"
		defined "$name" $below
	} | sort -u >"$t/allowed"
	undefined "$name" | comm -23 - "$t/allowed" >"$t/wrong"
	wrong "libcn_$name"
	includes "$name" "$below"
}

# layer NAME "MODULES BELOW"
layer() {
	exists "$1" || return
	defined "$1" $2 >"$t/allowed"
	defined $everything | comm -23 - "$t/allowed" >"$t/others"
	undefined "$1" | comm -12 - "$t/others" >"$t/wrong"
	wrong "libcn_$1"
	includes "$1" "$2"
}

everything="util proto topo sched coll link node ipc client sim plan shared daemon"
# fopen64() is fopen() for files of any size.
for m in $everything; do
	nm -g "$(archive "$m")" 2>/dev/null | awk -v defined="$t/$m.defined" '
		NF == 3 { print $3 >defined }
		$1 == "U" { sub(/^fopen64$/, "fopen", $2); print $2 }
	' | sort -u >"$t/$m.undefined"
	sort -u -o "$t/$m.defined" "$t/$m.defined"
done

# util: of a stream that the caller opened, of an error number, and pages of memory
pure util "" $text $sort fread ferror strerror mmap mmap64 madvise munmap
pure proto "util" $text
pure topo "util" $text $sort $files
pure sched "topo util" $text $sort
pure coll "sched proto topo util" $text $sort
pure ipc "sched util"
pure sim "coll sched proto topo util" $text $sort
pure plan "shared sched topo util" $text $sort $files putc fputs sqrt __sprintf_chk
layer link "proto util"
layer node "coll link proto sched topo util"
layer client "node ipc coll link proto sched topo util"
layer daemon "node ipc coll link proto sched topo util"
exit $status
