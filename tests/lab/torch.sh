# SPDX-License-Identifier: BSD-2-Clause
# The backend of torch.distributed: every collective against a model, asynchronous work, the death of a
# rank as an exception, and training with DistributedDataParallel.
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab
need python3
python3 -c 'import torch' 2>/dev/null || skip "PyTorch is not installed (Debian: python3-torch)"

here=$(cd "$(dirname "$0")" && pwd)
examples=$(dirname "$(command -v collnet)")/../share/doc/collnet/examples
python_package

collnet lab run --shape 4 --rate none --timeout 200 "$patient" -- \
	python3 "$here/torch_calls.py" "$PWD/calls.store" calls >out 2>&1 || { cat out; fail "calls"; }
[ "$(grep -o 'right: rank .' out | sort -u | wc -l)" = 4 ] || { cat out; fail "not every rank says that it is right"; }
echo "ok: every operation on 4 ranks"

collnet lab run --shape 3 --rate none --timeout 200 -- \
	python3 "$here/torch_calls.py" "$PWD/death.store" death >out 2>&1
# A future repeats the message.
[ "$(grep -o 'CollnetError: rank 1 on node h1 died' out | wc -l)" = 4 ] &&
	[ "$(grep -o 'future: ' out | wc -l)" = 2 ] || { cat out; fail "the death of a rank"; }
echo "ok: the death of a rank is an exception, also of a future"

collnet lab run --shape 4 --rate none --timeout 200 "$patient" -- \
	python3 "$examples/ddp.py" "$PWD/ddp.store" >out 2>&1 || { cat out; fail "training"; }
has 'ddp: .*: correct$' out
echo "ok: $(grep 'ddp:' out)"

# torchrun starts two ranks on each host. (PyTorch 1.13 with Python 3.11 fails without both options.)
if command -v torchrun >/dev/null; then
	cat >start <<-EOS
		#!/bin/sh
		export OMP_NUM_THREADS=1
		exec torchrun --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint h0:29400 \\
			--rdzv_id 1 --redirects 0:1 --tee 0:1 --log_dir "$PWD/log.\$COLLNET_RANK" "$examples/ddp.py"
	EOS
	chmod +x start
	collnet lab run --ip --shape 2 --rate none --timeout 200 "$patient" -- ./start >out 2>&1 || { cat out; fail "torchrun"; }
	has 'ddp: .* on 4 ranks, .*: correct$' out
	echo "ok: torchrun: $(grep 'ddp:' out)"
fi
