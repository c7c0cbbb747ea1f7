# SPDX-License-Identifier: BSD-2-Clause
# A daemon whose limit of descriptors is below what it has open sleeps, although clients wait at its
# socket, and serves clients when the limit is raised. One below what they need ends a program in direct
# mode and collnetd with its name.
. "$(dirname "$0")/lib.sh"
need_lab
need ps prlimit

host_commands await worker
collnet lab shell --shape 1 --keep-logs "$PWD" -- sh -c '
	pid=$(worker h0)
	slept() { sed -n "s/^voluntary_ctxt_switches:[^0-9]*//p" /proc/$pid/status; }
	prlimit --pid $pid --nofile=1: || exit 3
	lab-on h0 collnet status >out.waiting 2>&1 &
	await $COLLNET_LAB_DIR/logs/h0.log 10 "no descriptor is left" || exit 4
	# It sleeps before each of five further tries; one that spins never sleeps.
	first=$(slept)
	tries=500
	until [ $(($(slept) - first)) -ge 5 ]; do
		[ $((tries -= 1)) -gt 0 ] || exit 5
		sleep 0.02
	done
	prlimit --pid $pid --nofile=1024: || exit 6
	wait $! # served, unless this took longer than it waits
	lab-on h0 collnet status >out.status 2>&1 || exit 7
	grep -q "node h0" out.status' >out 2>&1 </dev/null || {
	status=$?
	cat out out.* h0.log
	fail "status $status"
}
[ "$(grep -c "no descriptor is left" h0.log)" -eq 1 ] || { cat h0.log; fail "not one line"; }
echo "ok: $(grep "no descriptor is left" h0.log)"

# A program in direct mode says what to raise, whichever descriptor is one too many, and so does collnetd.
# ./serve N: a collnetd that is ended when it is ready; its status, also if it is not.
cat >serve <<'EOS'
cd "$HERE" || exit 1
rm -f few.*
{
	sh -c 'echo $$ >few.pid; ulimit -n '"$1"'; exec collnetd --interface eth0 --user none \
		--socket "$HERE/few.sock" --ready-fd 3 3>few.ready'
	echo $? >few.status
} &
until [ -s few.ready ] || [ -s few.status ]; do sleep 0.02; done
[ -s few.status ] || kill -TERM "$(cat few.pid)"
wait
exit "$(cat few.status)"
EOS
cat >few <<'EOS'
for how in packet udp collnetd; do
	n=4 # without descriptor 3 no program starts, which --ready-fd has here
	[ $how != collnetd ] || n=5
	until
		case $how in
		collnetd) lab-on h0 sh "$HERE/serve" $n ;;
		*)
			lab-on h0 env COLLNET_MODE=direct COLLNET_LINK=$how COLLNET_SIZE=1 COLLNET_RANK=0 \
				sh -c "ulimit -n $n && exec collnet bench barrier --iterations 1"
			;;
		esac >out.few 2>&1
	do
		grep -q "ulimit -n" out.few && [ $((n += 1)) -lt 40 ] || {
			echo "$how with $n descriptors:"
			cat out.few
			exit 1
		}
	done
	[ $n -gt 5 ] || exit 2
	echo "ok: $how takes $n descriptors and says so if there are fewer"
done
EOS
export HERE="$PWD"
COLLNET_PEERS=h0, collnet lab shell --shape 1 --ip --no-daemons -- sh ./few || fail "no word of the limit"
