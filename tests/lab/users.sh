# SPDX-License-Identifier: BSD-2-Clause
# Two ordinary users on one node: resources, frames and jobs of one do not affect the other.
# run: root
. "$(dirname "$0")/lib.sh"
need_lab
need greedy setpriv
[ "$(id -u)" -eq 0 ] || skip "two users of a node need root"

HERE=$PWD
export HERE
chmod 755 "$HERE"

# as USER COMMAND...: 65001 or 65002, neither the daemon's user nor in its group.
cat >as <<'EOS'
#!/bin/sh
uid=$1
shift
export COLLNET_SOCKET=$HERE/d.sock COLLNET_MODE=daemon HOME=/nonexistent
exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps=-all "$@"
EOS
# daemon OPTION...: a daemon that root starts; its pid in ./pid. An option '-n N' limits its
# descriptors.
cat >daemon <<'EOS'
#!/bin/sh
cd "$HERE" || exit 1
rm -f ready
mkfifo ready
if [ "$1" = -n ]; then
	ulimit -n "$2"
	shift 2
fi
collnetd -i eth0 --node h0 --socket "$HERE/d.sock" --ready-fd 3 "$@" 3>ready 2>>d.log &
echo $! >pid
read -r line <ready
[ "$line" = READY ] || { cat d.log; exit 1; }
EOS
chmod 755 as daemon
PATH=$HERE:$PATH

# lab WHAT COMMAND
lab() {
	: >d.log
	collnet lab run --timeout 200 --shape 1 --no-daemons -- sh -c "cd $HERE; export COLLNET_SOCKET=$HERE/d.sock COLLNET_MODE=daemon
		$2
		kill -TERM \$(cat pid); wait" >out 2>&1 || { cat out d.log; fail "$1"; }
}

# well: the other user is served.
well='as 65002 collnet bench alltoall --algorithm shuffle --sizes 1k --iterations 20 --verify >well 2>&1 ||
	{ echo "the other user is not served:"; cat well; exit 3; }'
export COLLNET_JOB=own COLLNET_RANK=0 COLLNET_SIZE=1

# ---- permission ---------------------------------------------------------------------------
lab "who may" '
	daemon || exit 1
	if as 65001 collnet status >status 2>&1; then echo "not in the group, and served"; exit 3; fi
	collnet status >/dev/null || exit 4 # root may
	grep Seccomp: /proc/$(cat pid)/status >filter'
refused="no permission to use collnetd.s socket .*:"
if getent group collnet; then
	has "$refused join its group, collnet, or see group and socket-mode" status
else
	has "$refused there is no group collnet: as root, .*groupadd -r collnet" status
	has "there is no group collnet, so users.*groupadd -r collnet" d.log
fi
has "2$" filter
echo "ok: the socket is for its group, and the daemon's system calls are filtered"

# ---- quotas -------------------------------------------------------------------------------
lab quotas '
	daemon --socket-mode 0666 --max-memory 64m --max-connections 40 --max-teams 5 \
		--max-endpoints 70 --max-regions 100 || exit 1
	as 65001 greedy $HERE/d.sock memory 4k >regions || exit 4
	as 65001 greedy $HERE/d.sock memory 4m >memory || exit 4
	as 65001 greedy $HERE/d.sock memory 32g >sparse || exit 4
	as 65001 greedy $HERE/d.sock connections >connections || exit 4
	n=400 # until the daemon has seen the end of those
	until as 65001 collnet status >/dev/null 2>&1; do [ $((n -= 1)) -gt 0 ] || exit 5; sleep 0.05; done
	as 65001 greedy $HERE/d.sock teams >teams || exit 4
	as 65001 greedy $HERE/d.sock alone >alone || exit 4
	as 65001 greedy $HERE/d.sock endpoints >endpoints || exit 4
	mkfifo end
	as 65001 greedy $HERE/d.sock hold 40 <end >held &
	exec 4>end
	n=400
	while ! grep -q held held; do [ $((n -= 1)) -gt 0 ] || exit 5; sleep 0.05; done
	if as 65001 collnet status >refused 2>&1; then exit 6; fi
	'"$well"'
	exec 4>&-
	greedy $HERE/d.sock memory 1g >root'
has "^16 granted: user 65001 has 67108864 bytes of shared memory .*max-memory" memory
has "^0 granted: user 65001 has 0 bytes .*34359738368 more would exceed .*max-memory" sparse
has "^100 granted: user 65001 has 100 regions of shared memory .*max-regions" regions
has "^40 granted: user 65001 has 40 connections .*max-connections" connections
has "^5 granted: user 65001 has 5 teams .*max-teams" teams
has "^5 granted: user 65001 has 5 teams .*max-teams" alone
has "^70 granted: user 65001 has 70 endpoints .*max-endpoints" endpoints
has "user 65001 has 40 connections" refused
[ "$(grep -c "user 65001" d.log)" -le 12 ] || { cat d.log; fail "a flood of lines in the log"; }
echo "ok: a user has his quota, and the other one his"

# ---- descriptors --------------------------------------------------------------------------
lab descriptors '
	daemon --socket-mode 0666 || exit 1
	ls /proc/$(cat pid)/fd | wc -l >before
	as 65001 greedy $HERE/d.sock descriptors 600 >taken || exit 4
	'"$well"'
	ls /proc/$(cat pid)/fd | wc -l >after'
[ "$(cat before)" -eq "$(cat after)" ] || fail "descriptors before: $(cat before), after: $(cat after)"
echo "ok: no descriptor comes in ($(cat taken))"

# ---- no descriptors left ------------------------------------------------------------------
lab "no descriptors left" '
	daemon -n 40 --socket-mode 0666 || exit 1
	as 65001 greedy $HERE/d.sock connections >connections || exit 4
	'"$well"'
	kill -0 $(cat pid)'
has "granted: collnetd has no descriptor left" connections
echo "ok: without descriptors it says so"

# ---- jobs ---------------------------------------------------------------------------------
lab jobs '
	daemon --socket-mode 0666 || exit 1
	as 65002 env COLLNET_JOB=secret-name COLLNET_SIZE=2 COLLNET_TIMEOUT=60000 \
		collnet bench barrier --iterations 1 >mine 2>&1 &
	n=400
	while ! as 65002 collnet status --json | grep -q secret-name; do
		[ $((n -= 1)) -gt 0 ] || exit 5
		sleep 0.05
	done
	as 65001 collnet status >others
	as 65001 collnet status --json >>others
	collnet status --json >roots
	as 65001 greedy $HERE/d.sock join secret-name >joined || exit 4
	as 65002 env COLLNET_JOB=secret-name COLLNET_SIZE=2 COLLNET_RANK=1 \
		collnet bench barrier --iterations 1 >mine.1 2>&1 || { cat mine.1; exit 6; }'
lacks "secret-name" others
has "secret-name" roots
lacks "^joined" joined
has "missing" joined
echo "ok: a job is its user's"
