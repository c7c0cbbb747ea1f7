# SPDX-License-Identifier: BSD-2-Clause
# The lab on topologies with cycles, parallel links and links of several cables, and on Slurm's: it
# builds the spanning tree, and every byte of an exchange is right.
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

# Three switches in a ring, one side of it double, and one of two cables. The names of the switches
# are words of ip too.
cat >ring.topo <<'EOF'
switch a
switch dev
switch up
host h0
host h1
host h2
host h3
host h4
link a dev rate 100mbit buffer 45 channels 2
link dev up rate 100mbit buffer 45
link up a rate 100mbit buffer 30
link a dev rate 100mbit buffer 45
link h0 a rate 20mbit buffer 43
link h1 a rate 20mbit buffer 43
link h2 dev rate 20mbit buffer 43
link h3 up rate 10mbit buffer 20 channels 3
link h4 up rate 20mbit buffer 43
EOF

collnet lab shell --topology ring.topo --no-daemons -- sh -c \
	'ip -o link; tc qdisc; echo; lab-on h3 tc qdisc; cat "$COLLNET_TOPOLOGY"' >out 2>err ||
	{ cat out err; fail "the ring of switches does not come up"; }
[ "$(wc -l <err)" -eq 1 ] || { cat err; fail "not one line about the links left out"; }
has "collnet lab: 2 of 9 links are not in the spanning tree and are not built, such as" err
has "a-dev@" out
has "up-a@" out
lacks "dev-up@" out
lacks "up-dev@" out
[ "$(grep -c '@' out)" -eq $((2 * 2 + 5)) ] || { cat out; fail "other cables than the tree's"; }
# A link of two cables has the rate and the buffers of both, at both ends.
for port in a-dev dev-a; do
	has "tbf .* dev $port root .* rate 200Mbit" out
	has "pfifo .* dev $port .* limit 90p" out
done
has "tbf .* dev up-a root .* rate 100Mbit" out
has "pfifo .* dev up-a .* limit 30p" out
has "tbf .* dev up-h3 root .* rate 30Mbit" out
has "pfifo .* dev up-h3 .* limit 60p" out
has "tbf .* dev eth0 root .* rate 30Mbit" out # the host's own end
# The daemons read the tree, with a link's channels as they were.
has "^link a dev rate 100mbit buffer 45 channels 2$" out
lacks "^link dev up" out

collnet lab run --topology ring.topo --timeout 200 "$patient" --json -- \
	collnet bench alltoall --sizes 4k --iterations 2 --verify >out 2>err ||
	{ cat out err; fail "an exchange on the ring of switches"; }
has " right" out
[ "$(json drops_total out)" = 0 ] || { cat out; fail "frames were lost"; }

# The other way round, as the user says that his switches do it.
collnet topo tree ring.topo --kind bfs --root dev >tree.topo || fail "topo tree"
collnet lab run --topology tree.topo --no-daemons --timeout 200 "$patient" -- \
	collnet bench allgather --sizes 1k --iterations 2 --verify >out 2>err ||
	{ cat out err; fail "an allgather on the chosen tree"; }
has " right" out
lacks "spanning tree" err
has "^link dev up " tree.topo

# Slurm's file says no rates: as fast as the machine; and one with rates by a replacement.
cat >topology.conf <<'EOF'
# three leaves under one spine
SwitchName=leaf0 Nodes=n[0-2]
SwitchName=leaf1 Nodes=n[3-4]
SwitchName=leaf2 Nodes=other
SwitchName=spine Switches=leaf[0-2]
EOF
collnet lab run --topology topology.conf --timeout 200 "$patient" -- \
	collnet bench alltoall --sizes 4k --iterations 2 --verify >out 2>err ||
	{ cat out err; fail "an exchange on Slurm's topology"; }
has "6 ranks on 6 nodes" out
has " right" out
collnet topo tree topology.conf | sed 's/rate none/rate 20mbit buffer 43/' >lab.topo
collnet lab run --topology lab.topo --timeout 200 "$patient" --ports -- \
	collnet bench alltoall --sizes 1k --iterations 2 --verify >out 2>err ||
	{ cat out err; fail "an exchange on Slurm's topology with rates"; }
has " right" out
has "^leaf2 *other " out
echo "ok"
