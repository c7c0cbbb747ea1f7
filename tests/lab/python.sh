# SPDX-License-Identifier: BSD-2-Clause
# The Python package: every operation has the result of a model in plain Python, and the death of a
# rank is an exception that names its node.
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need python3

here=$(cd "$(dirname "$0")" && pwd)
examples=$(dirname "$(command -v collnet)")/../share/doc/collnet/examples
python_package
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "python3 is older than 3.9"
seed=${SEED:-1}
echo "seed $seed"

# right PROGRAM ARGUMENT...: each of four ranks says that it is right.
right() {
	program=$1
	shift
	collnet lab run --shape 4 --rate none --timeout 200 "$patient" -- python3 "$here/$program.py" "$@" \
		>out 2>&1 || { cat out; fail "$program"; }
	[ "$(grep -o 'right: rank .' out | sort -u | wc -l)" = 4 ] ||
		{ cat out; fail "$program: not every rank says that it is right"; }
	echo "ok: $program: $(grep 'right: rank 0' out)"
}
export PYTHONDONTWRITEBYTECODE=1 # the source may be read-only
right python_calls "$seed" calls
right python_arguments
right python_requests
right python_signals

collnet lab run --shape 2 --rate none --no-daemons --timeout 200 -- python3 "$here/python_dropped.py" >out 2>&1 ||
	{ cat out; fail "an operation that was dropped in direct mode"; }
[ "$(grep -c 'right: rank' out)" = 2 ] || { cat out; fail "python_dropped"; }
echo "ok: a context that was dropped in direct mode"

collnet lab run --shape 2 --rate none --no-daemons --timeout 200 -- python3 "$here/python_log.py" >out 2>&1 ||
	{ cat out; fail "the function of the log"; }
[ "$(grep -c 'right: rank' out)" = 2 ] || { cat out; fail "python_log"; }
echo "ok: the function of the log"

collnet lab run --shape 4 --timeout 200 "$patient" -- \
	python3 "$here/python_calls.py" "$seed" death >out 2>&1
# What several ranks write at once can share a line.
[ "$(grep -o 'CollnetError ERANK: rank 1 on node h1' out | wc -l)" = 3 ] || { cat out; fail "the death of a rank"; }
echo "ok: $(grep 'CollnetError' out | head -n 1)"

collnet lab run --shape 3 --ranks-per-node 2 --rate none --timeout 200 "$patient" -- python3 "$examples/sort.py" \
	>out 2>&1 || { cat out; fail "the example"; }
has '60000 numbers on 6 ranks: correct' out
echo "ok: $(cat out)"
