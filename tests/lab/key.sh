# SPDX-License-Identifier: BSD-2-Clause
# Frames that are authenticated by the key of the cluster: right bytes with each link and encapsulation, a node
# with another key or none is named, and files that are no keys.
# run: asan-long
# timeout: 240
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

HERE=$PWD
export HERE
key=0123456789abcdef0123456789ABCDEF
(umask 077 && echo $key >key && printf '%032d' 7 >other)

for net in "--shape 4x2 --rate 20mbit --encapsulation raw" "--shape 2x2 --ranks-per-node 2" \
	"--shape 4 --rate 100mbit --loss 1% --encapsulation tcp" "--shape 3 --mtu 652" "--shape 3 --mtu 9000" \
	"--shape 3 --ip --daemon-arg=--link=udp"; do
	# shellcheck disable=SC2086
	lab_rows --timeout 90 $net --daemon-arg=--key=$PWD/key -- alltoall --sizes 1,10k,300k --iterations 2
	echo "ok: $what"
	# shellcheck disable=SC2086
	lab_rows --timeout 90 $net --daemon-arg=--key=$PWD/key -- allreduce --sizes 8,100k --iterations 2
	echo "ok: $what"
done
export COLLNET_KEY=$PWD/key
lab_rows --timeout 60 --shape 3 --no-daemons -- alltoall --sizes 1,300k --iterations 2
echo "ok: $what"

# refused LAB-OPTION SED TEXT TEXT: SED makes h2 start its daemon with another key; what the two others say of it,
# and it of them.
refused() {
	rm -f ./*.out ./*.status
	# shellcheck disable=SC2086
	collnet lab run --shape 3 --timeout 60 $1 --tag -- sh -c '
		if [ $COLLNET_RANK = 2 ]; then
			pid=$(cat $COLLNET_LAB_DIR/h2.daemon.pid)
			kill $pid && timeout 10 tail --pid=$pid -s 0.02 -f /dev/null
			sed -i "'"$2"'" $COLLNET_LAB_DIR/h2.daemon.cmd
			lab-daemon h2 || exit 3
		fi
		! collnet bench barrier --timeout 5 >$HERE/$COLLNET_RANK.out 2>&1 || exit 4
		collnet status >$HERE/$COLLNET_RANK.status' >out 2>&1 </dev/null || {
		cat out ./*.out
		fail "a node with another key, $1, $2"
	}
	for rank in 0 1; do
		has "1 of 3 ranks missing at the deadline: 2; h2 $3" $rank.out
		has "^h2 $3" $rank.status
	done
	has "h0 $4" 2.out
	echo "ok: $(cat 0.out)"
}
refused "--daemon-arg=--key=$PWD/key" "s,=$PWD/key,=$PWD/other," "has another key than this node" "has another key than this node"
refused "" "s,--interface,--key $PWD/key --interface," "has a key, this node none" "has no key, this node has one"

collnet lab run --shape 1 --daemon-arg=--key="$PWD/key" -- collnet status >out 2>&1 </dev/null || { cat out; fail "status"; }
has "cluster 1, authenticated$" out
has '^bad_frames  *0 ' out

# bad TEXT: collnetd does not start with ./bad.
bad() {
	collnet lab run --shape 1 --no-daemons -- \
		collnetd --interface eth0 --socket "$PWD/s" --user none --key "$PWD/bad" >out 2>&1 </dev/null &&
		fail "collnetd started with a bad key: $1"
	has "$1" out
}
bad "cannot read the key $PWD/bad: No such file or directory"
mkdir bad
bad "bad: not a regular file"
rmdir bad
cp key bad
chmod 640 bad
bad "bad: others than its owner have permissions: chmod 600"
chmod 600 bad
for text in "" 0123456789abcdef0123456789abcde 0123456789abcdef0123456789abcdef0 0123456789abcdef0123456789abcdeg; do
	echo $text >bad
	bad "bad: expected one line of 32 hexadecimal digits, as of 'openssl rand -hex 16'"
done
echo "ok: files that are no keys"
