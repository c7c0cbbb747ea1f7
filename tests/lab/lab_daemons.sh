# SPDX-License-Identifier: BSD-2-Clause
# How the lab treats its daemons, with a stand-in for collnetd that can misbehave on request.
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

cat >stand-in <<'EOF'
#!/bin/sh
# Says that it is ready, ends on SIGTERM with $STATUS; other ends by $HOW.
echo "stand-in: $*" >&2
node= fd=
while [ $# -gt 0 ]; do
	case $1 in
	--node) node=$2 ;;
	--ready-fd) fd=$2 ;;
	esac
	shift
done
case $HOW:$node in
refuse:h1) echo "eth0 is made of wood" >&2; exit 1 ;;
silent:h1) exec >&- ; eval "exec $fd>&-"; exit 0 ;;
slow:h1) [ -n "$fd" ] && echo >"$STARTED" && exec sleep 1000 ;;
esac
trap 'exit ${STATUS:-0}' TERM
[ -z "$fd" ] || eval "echo READY >&$fd; exec $fd>&-"
while :; do
	sleep 1000 &
	wait $!
done
EOF
chmod 755 stand-in
export COLLNETD="$PWD/stand-in" HOW STATUS

# run EXPECTED COMMAND
run() {
	collnet lab run --shape 2x2 --keep-logs "$PWD" --daemon-arg "two words" -- sh -c "$2" >out 2>err
	got=$?
	[ $got -eq "$1" ] || { cat out err; fail "status $got instead of $1 (HOW=$HOW)"; }
}

HOW=well
COLLNET_MODE=direct run 0 '
	[ "$COLLNET_SOCKET" = "$COLLNET_LAB_DIR/$COLLNET_NODE.sock" ] && [ -z "${COLLNET_MODE+set}" ]'
[ ! -s err ] || { cat err; fail "complaints about good daemons"; }
for h in h0 h1 h2 h3; do
	has "--interface eth0 --node $h --topology .*/topology --socket .*/$h.sock" $h.log
	has "--user none two words --ready-fd" $h.log
done

# A daemon that does not start: its host and its last line are printed, and no command is run.
for HOW in refuse silent; do
	run 1 'echo ran'
	has "collnetd on h1 did not start" err
	lacks ran out
	[ $HOW = silent ] || has "^\[h1\] eth0 is made of wood" err
done

# Daemons that take long to start do not keep the lab from its timeout, or from signals.
HOW=slow STARTED=$PWD/started
export STARTED
collnet lab run --shape 2x2 --timeout 1 -- echo ran >out 2>err
got=$?
[ $got -eq 124 ] || { cat out err; fail "status $got instead of 124 while a daemon starts"; }
has "timed out after 1 s; daemons not ready: [1-4] of 4" err
lacks ran out
rm started
collnet lab run --shape 2x2 --timeout 60 -- true 2>err &
lab=$!
i=0
until [ -e started ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || { cat err; fail "no daemon is started"; }
	sleep 0.1
done
kill -TERM $lab
wait $lab
[ $? -eq 143 ] || { cat err; fail "SIGTERM does not end the lab while a daemon starts"; }
[ ! -s err ] || { cat err; fail "a message after SIGTERM"; }

# One that ends badly makes the lab's status bad.
HOW=well STATUS=9
run 1 true
has "collnetd on h2 ended with status 9" err
STATUS=0

# Tests may kill one and start it again, from any host.
PROCESSORS=$(nproc)
export PROCESSORS
run 0 '
	[ $COLLNET_RANK = 3 ] || exit 0
	old=$(cat "$COLLNET_LAB_DIR/h1.daemon.pid")
	kill -9 $old || exit 3
	lab-daemon h1 || exit 4
	new=$(cat "$COLLNET_LAB_DIR/h1.daemon.pid")
	[ $new != $old ] && kill -0 $new || exit 5
	# it is in its own host again
	[ "$(lab-on h1 readlink /proc/self/ns/net)" = "$(readlink /proc/$new/ns/net)" ] || exit 6
	[ "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$new/ns/net)" ] || exit 7
	# and on the processors of its host, which are not those of the next one
	cpus() { sed -n "s/^Cpus_allowed_list://p" /proc/$1/status; }
	[ "$(lab-on h1 sed -n "s/^Cpus_allowed_list://p" /proc/self/status)" = "$(cpus $new)" ] || exit 8
	[ "$(cpus "$(cat "$COLLNET_LAB_DIR/h3.daemon.pid")")" = "$(cpus $$)" ] || exit 9
	[ "$(cpus $$)" != "$(lab-on h2 sed -n "s/^Cpus_allowed_list://p" /proc/self/status)" ] ||
		[ $PROCESSORS = 1 ] || exit 10'
has "collnetd on h1 was killed by signal 9" err
echo "ok"
