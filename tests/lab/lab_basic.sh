# SPDX-License-Identifier: BSD-2-Clause
# The lab: ranks and their environment, output, statuses, options.
# run: root-long asan-long
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

# status EXPECTED ARGUMENT...: `collnet lab ARGUMENT...` ends with that status.
status() {
	expected=$1
	shift
	collnet lab "$@" >out 2>err </dev/null
	got=$?
	[ $got -eq "$expected" ] || {
		cat out err
		fail "status $got instead of $expected: collnet lab $*"
	}
}

# Every rank once, node by node, each with its host.
status 0 run --shape 2x2 --ranks-per-node 2 -- \
	sh -c 'echo "$COLLNET_RANK/$COLLNET_SIZE $COLLNET_NODE $COLLNET_LAB $COLLNET_INTERFACE"'
sort out >sorted
cat >expected <<EOF
0/8 h0 1 eth0
1/8 h0 1 eth0
2/8 h1 1 eth0
3/8 h1 1 eth0
4/8 h2 1 eth0
5/8 h2 1 eth0
6/8 h3 1 eth0
7/8 h3 1 eth0
EOF
cmp sorted expected || { cat sorted; fail "the ranks are not as expected"; }

# The worst status counts; signals as a shell says them.
status 0 run --shape 3 --no-daemons -- true
status 40 run --shape 3 --no-daemons -- sh -c 'exit $((COLLNET_RANK * 20))'
status 139 run --shape 2 --no-daemons -- sh -c '[ $COLLNET_RANK = 0 ] || kill -SEGV $$'
status 127 run --shape 1 --no-daemons -- /nonexistent/command
has "/nonexistent/command" err
status 124 run --shape 3 --no-daemons --timeout 5 -- \
	sh -c '[ $COLLNET_RANK = 1 ] || sleep 1000'
has "still running: rank 0, 2" err

# Output: whole lines of all ranks, with --tag marked; standard input is rank 0's.
echo "from outside" | collnet lab run --shape 3 --tag --no-daemons -- \
	sh -c 'cat; echo "error $COLLNET_RANK" >&2; printf "no newline"' >out 2>err ||
	fail "status $?"
sort out >sorted
printf '%s\n' '[h0:0] from outside' '[h0:0] no newline' '[h1:1] no newline' \
	'[h2:2] no newline' | cmp - sorted || { cat out; fail "output"; }
printf '[h%d:%d] error %d\n' 0 0 0 1 1 1 2 2 2 >expected
sort err | cmp - expected || { cat err; fail "standard error"; }

# Rank 0's lines are whole, too, and in order. JSON begins on a new line, also after long ones.
collnet lab run --shape 3 --no-daemons -- sh -c '
	if [ $COLLNET_RANK = 0 ]; then
		printf "result of rank 0 "
		until [ -e said.1 ] && [ -e said.2 ]; do sleep 0.05; done
		echo is 42
		for i in 1 2 3; do echo "out $i"; echo "error $i" >&2; done
	else
		echo "rank $COLLNET_RANK"
		until grep -q "rank $COLLNET_RANK" out; do sleep 0.05; done
		echo >said.$COLLNET_RANK
	fi' >out 2>&1 || { cat out; fail "status $?"; }
[ "$(grep ' 42' out)" = "result of rank 0 is 42" ] || { cat out; fail "rank 0's line is not whole"; }
[ "$(grep -E '^(out|error)' out | paste -sd, -)" = "out 1,error 1,out 2,error 2,out 3,error 3" ] ||
	{ cat out; fail "rank 0's lines are not in order"; }
for size in 5 65536; do
	status 0 run --shape 1 --json --no-daemons -- sh -c "head -c $size /dev/zero | tr '\0' x"
	[ "$(wc -l <out)" -eq 2 ] && tail -n 1 out | grep -q '^{"ports"' ||
		{ cat out; fail "JSON is not on a line of its own behind $size bytes"; }
done

# Ranks that never stop writing: the time, signals and the end of the reader end the lab all the same,
# also if the reader is slow.
for slow in : "sleep 3"; do
	mkfifo pipe
	sh -c "$slow; exec cat >/dev/null" <pipe &
	reader=$!
	timeout 60 collnet lab run --shape 2 --tag --no-daemons --timeout 1 -- yes >pipe 2>err
	got=$?
	wait $reader
	rm pipe
	[ $got -eq 124 ] || { cat err; fail "status $got instead of 124 of ranks that write ($slow)"; }
	has "still running: rank 0, 1" err
done
timeout -k 60 2 collnet lab run --shape 2 --tag --no-daemons -- yes >/dev/null 2>err
got=$?
[ $got -eq 124 ] || { cat err; fail "the first signal does not end ranks that write: status $got"; }
{ timeout 60 collnet lab run --shape 2 --no-daemons -- yes 2>err; echo $? >status; } | head -n 1 >out
[ "$(cat out status | paste -sd' ' -)" = "y 141" ] || { cat out err status; fail "the end of the reader"; }
collnet lab run --shape 2 --no-daemons -- echo here >/dev/full 2>err
got=$?
[ $got -eq 1 ] || { cat err; fail "status $got instead of 1 on a full device"; }
has "the ranks' output could not be written" err

# Hosts have their cable and nothing else: no addresses, no other interfaces.
status 0 run --shape 2 --no-daemons --mtu 4000 -- ip -o addr show dev eth0
[ ! -s out ] || { cat out; fail "eth0 has an address"; }
status 0 run --shape 2 --no-daemons --mtu 4000 -- ip -o link
has "eth0.* mtu 4000 .* state UP .*02:c0:11:00:00:00" out
has "eth0.* mtu 4000 .* state UP .*02:c0:11:00:00:01" out
[ "$(wc -l <out)" -eq 4 ] || fail "there is more than lo and eth0"

# --ip: names and addresses, and only inside.
before=$(hostname) hosts=$(stat -c '%i %s %Y' /etc/hosts)
status 0 run --shape 2x2 --ip --no-daemons -- \
	sh -c 'echo "$(hostname) $(ip -o -4 addr show dev eth0)"; grep h3 /etc/hosts'
for i in 0 1 2 3; do
	has "^h$i .*10.77.0.$((i + 1))/16" out
done
# at least: the machine's own file may have such a line already
[ "$(grep -c '^10.77.0.4 h3$' out)" -ge 4 ] || fail "/etc/hosts"
[ "$(hostname)" = "$before" ] || fail "the host name changed outside"
[ "$(stat -c '%i %s %Y' /etc/hosts)" = "$hosts" ] || fail "/etc/hosts changed outside"

# The shell is among the switches; lab-on and ip netns lead to the hosts.
status 7 shell --shape 2x2 --no-daemons -- sh -c \
	'ip -o link; lab-on h3 sh -c "echo node \$COLLNET_NODE"; ip netns exec h2 ip -o link; exit 7'
has "s1-h0@" out
has "s0-s2@" out
has "^node h3" out
has "02:c0:11:00:00:02" out

# The caller's own job and socket stay; another host's socket does not.
COLLNET_JOB=mine status 0 shell --shape 2 --no-daemons -- sh -c '
	lab-on h1 sh -c "echo job \$COLLNET_JOB, socket \$COLLNET_SOCKET"
	COLLNET_SOCKET=$COLLNET_LAB_DIR/h0.sock lab-on h1 sh -c "echo then \$COLLNET_SOCKET"
	COLLNET_SOCKET=/tmp/mine lab-on h1 sh -c "echo kept \$COLLNET_SOCKET"'
has "^job mine, socket .*/h1.sock$" out
has "^then .*/h1.sock$" out
has "^kept /tmp/mine$" out

# Nothing numbers what the shell starts; launchers call lab-rsh, as ssh, with one string.
COLLNET_SIZE=3 status 0 shell --shape 2 --no-daemons -- sh -c '
	echo "size ${COLLNET_SIZE-none}, job ${COLLNET_JOB-none}"
	"$HYDRA_LAUNCHER_EXEC" -x h1 "echo node \$COLLNET_NODE; echo \"a  b\""'
has "^size none, job none$" out
has "^node h1$" out
has "^a  b$" out
SHELL=/bin/true status 0 shell --shape 2 --no-daemons --ip
has "lab-on HOST mpirun" out

# One line and status 2 for what cannot be meant.
while read -r options; do
	# shellcheck disable=SC2086 # words
	status 2 $options
	[ "$(wc -l <err)" -eq 1 ] || { cat err; fail "not one line: $options"; }
done <<EOF
run
run --shape 2
run --shape -- true
run --shape 8y2 -- true
run --shape 2 --topology x -- true
run --shape 2 --rate fast -- true
run --shape 2 --loss 101% -- true
run --shape 2 --loss x -- true
run --shape 2 --mtu 10 -- true
run --shape 2 --mtu 575 -- true
run --shape 2 --timeout 0 -- true
run --shape 2 --loss 100% -- true
run --shape 2 --ranks-per-node 0 -- true
run --shape 2 --ranks-per-node 2 --no-daemons -- true
run --shape 2 --encapsulation foo -- true
run --shape 2000 -- true
run --nonsense
run --topology /nonexistent -- true
walk
EOF
status 2 run --shape 2 --topology x -- true
has "specify --shape or --topology, not both" err
status 2 shell --shape 2 --tag -- true
has "a shell has no ranks: drop --tag" err
status 2 shell --shape 2 --ranks-per-node 2 -- true
has "a shell has no ranks: drop --tag and --ranks-per-node" err
status 2 run --shape 2 --no-daemons --keep-logs . -- true
has "there are no daemons: drop --keep-logs or --no-daemons" err
status 2 run --shape 2 --encapsulation foo -- true
has "'foo' is no encapsulation; there are .*tcp" err
[ "$(id -u)" -eq 0 ] || { # who may write everywhere
	status 1 run --shape 1 --keep-logs / -- true
	has "collnet lab: --keep-logs /: Permission denied" err
}
COLLNETD=/nonexistent status 1 run --shape 2 -- true
has "COLLNETD=/nonexistent" err
status 0 run --help
has "--uplink-buffer" out

# Where namespaces are refused: status 77 and what to do about it.
unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
	exec setpriv --bounding-set=-all --inh-caps=-all \
		collnet lab run --shape 2 --no-daemons -- true' >out 2>err
[ $? -eq 77 ] || { cat err; fail "no status 77 without namespaces"; }
has "sysctl user.max_user_namespaces" err
for limit in pid:0 mnt:0 net:0 uts:0 ipc:0 net:2 uts:2; do
	kind=${limit%:*}
	unshare -Ur sh -c 'echo "$2" >"/proc/sys/user/max_$1_namespaces" && exec collnet lab run --shape 2 --no-daemons -- true' \
		sh "$kind" "${limit#*:}" >out 2>err
	[ $? -eq 77 ] || { cat err; fail "no status 77 with $limit namespaces"; }
	has "No space left on device; as root: sysctl user.max_${kind}_namespaces=10000$" err
done
echo "ok"

# Descriptors that are closed are nobody's.
status 1 run --shape 1 --no-daemons --timeout 20 -- sh -c 'exec collnet lab run --shape 1 --no-daemons -- echo hi >&-'
has "output could not be written: Bad file descriptor" err

# What the environment says about a rank outside is nothing for a shell inside; what is empty is not set.
COLLNET_RANK=3 COLLNET_SOCKET=/nonexistent/socket COLLNET_ENCAPSULATION= COLLNETD= \
	collnet lab shell --shape 2 -- sh -c '[ -z "${COLLNET_RANK-}" ] && lab-on h1 collnet status' >out 2>err </dev/null ||
	{ cat out err; fail "the environment"; }
# The commands that the lab prints also work where collnet is called by its path.
self=$(command -v collnet)
PATH=/usr/bin:/bin "$self" lab shell --shape 2 -- lab-on h1 collnet status >out 2>err </dev/null ||
	{ cat out err; fail "collnet is not in the PATH of a lab"; }
export COLLNET_ENCAPSULATION=foo
status 2 run --shape 1 -- true
unset COLLNET_ENCAPSULATION
for rate in 1bit 1000; do
	status 2 run --shape 1 --rate $rate -- true
	has "'$rate' is neither none nor a rate with a unit, from 1kbit" err
done
echo "ok: the environment"
