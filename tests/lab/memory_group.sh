# SPDX-License-Identifier: BSD-2-Clause
# A daemon in a control group with little memory: it limits its clients by that, and is not killed.
# concurrent: yes
# run: root
. "$(dirname "$0")/lib.sh"
need_lab
need greedy kept
[ "$(id -u)" -eq 0 ] || skip "control groups need root"

# The group of this process; the new ones are below it.
if own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup) && [ -n "$own" ]; then
	GROUPS_OF=/sys/fs/cgroup/memory LIMIT=memory.limit_in_bytes
	[ -d "$GROUPS_OF$own" ] && GROUPS_OF=$GROUPS_OF$own
else
	GROUPS_OF=/sys/fs/cgroup LIMIT=memory.max
fi
group=$GROUPS_OF/collnet:test-$$
mkdir "$group" 2>/dev/null || skip "no control group can be made"
trap 'for g in "$group"/*/; do [ -d "$g" ] && rmdir "$g"; done; rmdir "$group"' EXIT
mkdir "$group/probe"
[ -w "$group/probe/$LIMIT" ] || skip "control groups here do not limit memory"

COLLNETD_REAL=$(command -v collnetd)
export COLLNETD_REAL LIMIT group
cat >limited <<'EOS'
#!/bin/sh
mkdir -p "$group/$$" && echo 160m >"$group/$$/$LIMIT" && echo $$ >"$group/$$/cgroup.procs" || exit 1
exec "$COLLNETD_REAL" "$@"
EOS
chmod 755 limited
COLLNETD=$PWD/limited collnet lab run --timeout 200 "$patient" --shape 2 --keep-logs "$PWD" -- sh -c '
	# Received data is charged to the daemon that writes it.
	collnet bench bcast --sizes 4m --iterations 1 --verify >out.fits.$COLLNET_RANK 2>&1 || exit 3
	if collnet bench bcast --sizes 256m --iterations 2 >out.over.$COLLNET_RANK 2>&1; then exit 4; fi
	[ $COLLNET_RANK = 0 ] || exit 0
	greedy $COLLNET_SOCKET memory 8m >out.granted || exit 5
	collnet status >out.status || exit 6' >out 2>&1 </dev/null || {
	status=$?
	cat out out.* h?.log
	fail "status $status"
}
has "of shared memory on this node; .* exceed three quarters of the memory limit of the daemon.s control group (125829120)" out.over.0
granted=$(sed -n 's/^\([0-9]*\) granted: .*/\1/p' out.granted)
[ "$granted" -ge 13 ] && [ "$granted" -le 15 ] || { cat out.granted; fail "not 13 to 15 regions"; }
echo "ok: of 160 MiB clients have $((granted * 8)): $(cat out.over.0)"

# A daemon that ends removes no memory from the programs that live on.
COLLNETD=$PWD/limited collnet lab run --timeout 200 "$patient" --shape 2 --keep-logs "$PWD" -- sh -c '
	kept "pid=\$(cat $COLLNET_LAB_DIR/h$COLLNET_RANK.daemon.pid); kill -TERM \$pid
		while kill -0 \$pid 2>/dev/null; do sleep 0.02; done"' >out 2>&1 </dev/null || {
	status=$?
	cat out h?.log
	fail "kept: status $status"
}
[ "$(grep -c "kept$" out)" -eq 2 ] || { cat out; fail "not two ranks"; }
echo "ok: what was received outlives a daemon that has little memory"
