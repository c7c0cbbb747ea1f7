# SPDX-License-Identifier: BSD-2-Clause
# COLLNET_SECRET: two users on two nodes form a job with the same secret. With another secret, or
# without one, a rank does not join, and each rank gets an error of one line that names the missing
# rank.
# concurrent: yes
# run: root
. "$(dirname "$0")/lib.sh"
need_lab
need setpriv
[ "$(id -u)" -eq 0 ] || skip "two users need root"

HERE=$PWD
export HERE
chmod 755 "$HERE"
touch uid.h0 uid.h1

# On each host: a daemon that everybody may use, then four jobs, whose ranks belong to two users.
cat >host <<'EOS'
#!/bin/sh
r=$COLLNET_RANK
cd "$HERE" || exit 1
mkfifo ready.$r
collnetd -i eth0 --node h$r --socket "$HERE/d$r.sock" --socket-mode 0666 --ready-fd 3 \
	3>ready.$r 2>d$r.log &
pid=$!
read -r line <ready.$r
[ "$line" = READY ] || { cat d$r.log; exit 1; }
unset COLLNET_SECRET
export COLLNET_SOCKET="$HERE/d$r.sock" COLLNET_MODE=daemon HOME=/nonexistent COLLNET_SIZE=2
# job NAME MILLISECONDS VARIABLE...: this host's rank of a job
job() {
	name=$1
	shift
	env COLLNET_JOB="$name" COLLNET_TIMEOUT="$1" "$2" \
		setpriv --reuid=$((65001 + r)) --regid=$((65001 + r)) --clear-groups --inh-caps=-all \
		collnet bench alltoall --sizes 1k --iterations 3 --verify >out.$name.$r 2>err.$name.$r
	echo $? >status.$name.$r
}
job same 20000 COLLNET_SECRET=correct-horse
if [ $r = 0 ]; then
	job other 3000 COLLNET_SECRET=correct-horse
	job none 3000 COLLNET_SECRET=correct-horse
else
	job other 3000 COLLNET_SECRET=wrong-horse
	job none 3000 UNUSED=
fi
job users 3000 UNUSED=
kill -TERM $pid
wait
EOS
chmod 755 host

collnet lab run --timeout 200 --shape 2 --no-daemons -- "$HERE/host" >out 2>&1 ||
	{ cat out d?.log; fail "the lab"; }

[ "$(cat status.same.0) $(cat status.same.1)" = "0 0" ] ||
	{ cat out.same.* err.same.*; fail "two users with the same secret form no job"; }
has right out.same.0
echo "ok: two users with the same secret form a job"

# refused NAME: both ranks have an error of one line that names the rank that is missing.
refused() {
	for r in 0 1; do
		[ "$(cat "status.$1.$r")" = 1 ] || { cat out.$1.$r err.$1.$r; fail "job $1 on h$r"; }
		[ "$(wc -l <"err.$1.$r")" -eq 1 ] || { cat "err.$1.$r"; fail "not one line"; }
		has "ranks\{0,1\} missing.*: $((1 - r))" "err.$1.$r"
	done
	lacks right "out.$1.0"
}
refused other
echo "ok: $(cat err.other.1)"
refused none
echo "ok: $(cat err.none.1)"
refused users
echo "ok: without a secret, two users form no job"
