# SPDX-License-Identifier: BSD-2-Clause
# collnetd under the restrictions of its systemd unit: system calls, address families and, as root, user and
# capabilities.
# concurrent: yes
# timeout: 120
# run: root
. "$(dirname "$0")/lib.sh"
need_lab
need systemd-analyze "${CC:=cc}"

unit=$(dirname "$(command -v collnet)")/../lib/systemd/system/collnetd.service
[ -f "$unit" ] || skip "no systemd unit is installed"

# ---- the unit's system calls, by this systemd's groups ------------------------------------

expand() { # NAME...
	for call; do
		case $call in
		@*)
			systemd-analyze syscall-filter "$call" >group || fail "systemd does not know $call"
			# shellcheck disable=SC2046
			expand $(sed '1d; /^ *#/d' group)
			;;
		*) echo "$call" ;;
		esac
	done
}

: >allowed
sed -n 's/^SystemCallFilter=//p' "$unit" >lines
while read -r line; do
	# shellcheck disable=SC2086
	expand ${line#\~} | sort -u >these
	cp allowed before
	case $line in
	\~*) comm -23 before these >allowed ;;
	*) sort -u before these >allowed ;;
	esac
done <lines
[ "$(wc -l <allowed)" -gt 100 ] || { cat allowed; fail "the unit allows hardly any system call"; }

echo '#include <sys/syscall.h>' | $CC -E -dM - |
	sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$/\1 \2/p' | sort >numbers
join numbers allowed | cut -d' ' -f2 >calls
[ -s calls ] || skip "the numbers of the system calls are not known"

# What collnetd's own filter allows after the start, the unit allows, too; but not a change of owners, nor that of a
# policy that a drop-in file has set.
sed -n '/^static const int allowed/,/^};/p' "$COLLNET_SOURCE/daemon/seccomp.c" |
	grep -o 'SYS_[a-z0-9_]*' | sed 's/SYS_//; /^f*chown/d; /^sched_setscheduler/d' | sort -u >own
cut -d' ' -f1 numbers | comm -12 own - | comm -23 - allowed >missing
[ -s own ] && [ ! -s missing ] || { cat missing; fail "the unit refuses the calls above, which collnetd's filter allows"; }
echo "ok: the unit allows what collnetd's own filter does"

# ---- a daemon under them ------------------------------------------------------------------

families=$(sed -n 's/^RestrictAddressFamilies=//p' "$unit")
as=
user=none
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	as='setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+net_raw --ambient-caps -all,+net_raw
		--bounding-set -all,+net_raw'
	user=
fi
mkdir run
chmod 777 . run
(umask 077 && echo 0123456789abcdef0123456789abcdef >key)
[ -z "$as" ] || chown 65534 key
export families as user
host_commands await
collnet lab run --no-daemons --shape 1 --timeout 60 --tag -- sh -eu -c '
	cd "$HERE"
	! ethtool -K eth0 tso on tx-udp-segmentation off >/dev/null 2>&1 || : >no-udp-segmentation
	$as restrict calls "$families" collnetd -i eth0 --node h0 --socket "$HERE/run/sock" --socket-mode 0666 \
		--key "$HERE/key" ${user:+--user $user} 2>log &
	pid=$!
	await log 20 "ready$" || { cat log; exit 1; }
	COLLNET_SOCKET=$HERE/run/sock collnet bench allgather --mode daemon --job j --rank 0 --ranks 1 --iterations 3 --sizes 64k --verify
	if [ -n "$as" ]; then
		# Those of processes that leave no core dump are root'"'"'s.
		for p in $pid $(cat /proc/$pid/task/$pid/children); do
			[ "$(stat -c %u /proc/$p/maps)" = 0 ] || { echo "process $p would dump core"; exit 1; }
		done
	fi
	kill -HUP $pid
	await log 20 "configuration reloaded" || { cat log; exit 1; }
	kill -TERM $pid
	wait $pid' >out 2>&1 </dev/null || { cat out log; fail "collnetd under the unit's restrictions"; }
has 'shutting down (SIGTERM)' log
lacks 'not permitted\|not supported' log
[ ! -e no-udp-segmentation ] || has 'segments TCP, but not UDP' log
echo "ok: collnetd works under the unit's restrictions"
