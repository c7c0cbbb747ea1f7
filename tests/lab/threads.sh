# SPDX-License-Identifier: BSD-2-Clause
# Threads that share a context, through the daemon and directly, and where LONG is yes with the
# library and the program under ThreadSanitizer, if the compiler has it.
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need threads

# try RANKS PROGRAM OPTION...
try() {
	every_rank "$@"
	! grep -q 'ThreadSanitizer' out || { cat out; fail "a data race: $*"; }
}

try 3 threads --shape 3 --rate none
try 4 threads --shape 2 --ranks-per-node 2 --rate none
COLLNET_MODE=direct try 3 threads --shape 3 --rate none --no-daemons
COLLNET_MODE=direct COLLNET_SPIN=1 try 2 "threads 8" --shape 2 --rate none --no-daemons

# Where LONG is yes: the whole library is compiled.
is_long || exit 0
cat >probe.c <<-'EOS'
	#include <pthread.h>
	static int x;
	static void *f(void *a) { x++; return a; }
	int main(void)
	{
		pthread_t t;
		pthread_create(&t, 0, f, 0);
		pthread_join(t, 0);
		return x - 1;
	}
EOS
cc=${CC:-cc}
command -v "$cc" >/dev/null || skip "there is no compiler for ThreadSanitizer"
{ $cc -fsanitize=thread probe.c -o probe -pthread && ./probe; } >/dev/null 2>&1 ||
	skip "the compiler has no ThreadSanitizer"
s=$COLLNET_SOURCE
mkdir objects
: >config.h # without pcap, which no test here uses
find "$s/lib" -name '*.c' ! -path '*/pcap*' ! -path '*/link/load.c' |
	CC=$cc S=$s xargs -P 2 -n 20 sh -c '
		for f; do
			$CC -std=gnu11 -O0 -fsanitize=thread -D_GNU_SOURCE -I. -I"$S" -I"$S/lib" \
				-I"$S/lib/include" -c "$f" \
				-o "objects/$(echo "$f" | tr / _).o" || exit 255
		done' sh >compile 2>&1 || { cat compile; fail "the library does not compile"; }
$cc -std=gnu11 -O0 -fsanitize=thread -I"$s/lib/include" "$s/tests/lab/threads.c" objects/*.o \
	-o threads-tsan -pthread -ldl >compile 2>&1 || { cat compile; fail "the program does not link"; }
PATH=$PWD:$PATH
COLLNET_MODE=direct try 2 "threads-tsan 6" --shape 2 --rate none --no-daemons
try 2 "threads-tsan 6" --shape 2 --rate none
