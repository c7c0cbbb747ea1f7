# SPDX-License-Identifier: BSD-2-Clause
"""
The same operations of torch.distributed over Gloo and over collnet, in turns, on every rank of a
job: torch_compare.py STORE [SIZE...]. tests/torch starts it.

Both process groups live in the same processes. After a barrier of the group each rank measures one
call, and the time of a call is that of the slowest rank. Printed are medians, and collnet's time over
Gloo's. SIZE is the bytes of a rank's input.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

import collnet.torch

torch.set_num_threads(1)
rank, size = int(os.environ["COLLNET_RANK"]), int(os.environ["COLLNET_SIZE"])
SECONDS, LEAST, MOST = 1.0, 5, 100  # of a cell: about so long, and as many calls


def all_reduce(group, n):
    x = torch.ones(max(n // 4, 1))
    return lambda: dist.all_reduce(x, group=group)


def all_gather(group, n):
    x, outs = torch.ones(n // 4), [torch.empty(n // 4) for _ in range(size)]
    return lambda: dist.all_gather(outs, x, group=group)


def all_to_all(group, n):
    x = torch.ones(n // 4 // size * size or size)
    out = torch.empty_like(x)
    return lambda: dist.all_to_all_single(out, x, group=group)


def broadcast(group, n):
    x = torch.ones(n // 4)
    return lambda: dist.broadcast(x, 0, group=group)


def barrier(group, _):
    return lambda: dist.barrier(group)


def training(group, n):
    """A step of data-parallel training, with so many bytes of gradients."""
    torch.manual_seed(1)
    width = max(int((n / 8) ** 0.5), 1)
    net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(),
                              torch.nn.Linear(width, width))
    parallel = torch.nn.parallel.DistributedDataParallel(net, process_group=group)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    x = torch.randn(16, width)

    def run():
        optimizer.zero_grad()
        parallel(x).square().mean().backward()
        optimizer.step()

    return run


def slowest(seconds):
    """Of each call, the time of the slowest rank."""
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX, group=groups["gloo"])
    return times.tolist()


def measure(operation, n):
    runs = {name: operation(group, n) for name, group in groups.items()}
    times = {name: [] for name in groups}

    def call(name):
        dist.barrier(groups[name])
        began = time.perf_counter()
        runs[name]()
        return time.perf_counter() - began

    for run in runs.values():
        run()
    once = max(slowest([call(name) for name in runs]))
    for _ in range(min(max(int(SECONDS / once / 2), LEAST), MOST)):
        for name in runs:
            times[name].append(call(name))
    medians = {name: statistics.median(slowest(times[name])) for name in runs}
    if rank == 0:
        ratio = medians["collnet"] / medians["gloo"]
        print(f"{operation.__name__:>11} {n:>8} {medians['gloo'] * 1e6:>10.0f} "
              f"{medians['collnet'] * 1e6:>10.0f} {ratio:>6.2f} {len(times['gloo']):>5}", flush=True)
    return medians


os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
groups = {"gloo": dist.new_group(backend="gloo"), "collnet": dist.new_group(backend="collnet")}
sizes = [int(word) for word in sys.argv[2:]] or [8, 1024, 65536, 1 << 20]
if rank == 0:
    print(f"{size} ranks, microseconds\n  operation    bytes       gloo    collnet  ratio calls")
measure(barrier, 0)
for operation in (all_reduce, all_to_all, all_gather, broadcast, training):
    for n in sizes:
        if operation is not training or n >= 65536:
            measure(operation, n)
dist.barrier(groups["gloo"])
