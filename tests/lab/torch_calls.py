# SPDX-License-Identifier: BSD-2-Clause
"""
The backend of torch.distributed, on every rank of a job: torch_calls.py STORE calls | death.
"""
import gc
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import collnet.torch

torch.set_num_threads(1)
rank, size = int(os.environ["COLLNET_RANK"]), int(os.environ["COLLNET_SIZE"])
ranks = range(size)


def expect(got, wanted, what):
    if not torch.equal(got, wanted):
        sys.exit(f"rank {rank}: {what}: {got} instead of {wanted}")


def data(of, *shape, dtype=torch.float32):
    """What a rank contributes: small integers, whose sums and products are exact."""
    draw = torch.Generator().manual_seed(1000 + of)
    return torch.randint(1, 4, shape, generator=draw).to(dtype)


def fold(function, tensors):
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        total = function(total, tensor)
    return total


def reductions(group, members):
    me, n = members.index(rank), len(members)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64,
                  torch.int32, torch.int8, torch.uint8):
        for op, function in ((dist.ReduceOp.SUM, torch.add), (dist.ReduceOp.PRODUCT, torch.mul),
                             (dist.ReduceOp.MIN, torch.minimum),
                             (dist.ReduceOp.MAX, torch.maximum)):
            x = data(rank, 5, 7, dtype=dtype)
            dist.all_reduce(x, op, group)
            expect(x, fold(function, [data(r, 5, 7, dtype=dtype) for r in members]), "all_reduce")
    for op, function in ((dist.ReduceOp.BAND, torch.bitwise_and),
                         (dist.ReduceOp.BOR, torch.bitwise_or),
                         (dist.ReduceOp.BXOR, torch.bitwise_xor)):
        x = data(rank, 9, dtype=torch.int32)
        dist.all_reduce(x, op, group)
        expect(x, fold(function, [data(r, 9, dtype=torch.int32) for r in members]), str(op))

    total = fold(torch.add, [data(r, 4, 6) for r in members])
    x = data(rank, 4, 6).t().contiguous().t()  # not contiguous
    dist.all_reduce(x, group=group)
    expect(x, total, "all_reduce of columns")
    x = data(rank, 4, 6)
    dist.all_reduce(x, dist.ReduceOp.AVG, group)
    expect(x, total / n, "an average")
    x = torch.complex(data(rank, 3), data(rank, 3))
    dist.all_reduce(x, group=group)
    expect(torch.view_as_real(x), torch.stack([fold(torch.add, [data(r, 3) for r in members])] * 2,
                                              1), "complex numbers")
    x = data(rank, 4, 6)
    dist.reduce(x, members[-1], group=group)
    if me == n - 1:
        expect(x, total, "reduce")

    parts = [[data(r * 50 + i, 2, 3) for i in range(n)] for r in members]
    wanted = fold(torch.add, [parts[r][me] for r in range(n)])
    out = torch.zeros(2, 3)
    dist.reduce_scatter(out, parts[me], group=group)
    expect(out, wanted, "reduce_scatter")
    out = torch.zeros(2, 3)
    dist.reduce_scatter_tensor(out, torch.cat(parts[me]), group=group)
    expect(out, wanted, "reduce_scatter_tensor")


def movements(group, members):
    me, n = members.index(rank), len(members)
    x = data(rank, 3, 3)
    dist.broadcast(x, members[1], group)
    expect(x, data(members[1], 3, 3), "broadcast")
    outs = [torch.zeros(3, 2).t() for _ in members]
    dist.all_gather(outs, data(rank, 2, 3), group)
    for r, out in zip(members, outs):
        expect(out, data(r, 2, 3), "all_gather")
    out = torch.zeros(2 * n, 3, dtype=torch.bool)
    dist.all_gather_into_tensor(out, data(rank, 2, 3) > 1, group)
    expect(out, torch.cat([data(r, 2, 3) > 1 for r in members]), "all_gather_into_tensor")
    if group is None:
        objects = [None] * n
        dist.all_gather_object(objects, {"rank": rank, "more": "x" * rank})
        if objects != [{"rank": r, "more": "x" * r} for r in members]:
            sys.exit(f"all_gather_object: {objects}")
        outs = [torch.zeros(4) for _ in members] if rank == 1 else None
        dist.gather(data(rank, 4), outs, 1)
        for r in members if rank == 1 else ():
            expect(outs[r], data(r, 4), "gather")
        out = torch.zeros(4)
        dist.scatter(out, [data(r, 4) for r in members] if rank == 1 else None, 1)
        expect(out, data(rank, 4), "scatter")
        weight = torch.nn.Parameter(torch.zeros(4))
        dist.scatter(weight, [data(r, 4) for r in members] if rank == 1 else None, 1)
        expect(weight.detach(), data(rank, 4), "scatter to a parameter")

    # Rank i sends i + j rows to rank j.
    def rows(i, j):
        return data(100 + 10 * i + j, i + j, 2)

    outs = [torch.zeros(me + j, 2) for j in range(n)]
    dist.all_to_all(outs, [rows(me, j) for j in range(n)], group)
    for j in range(n):
        expect(outs[j], rows(j, me), "all_to_all")
    out = torch.zeros(sum(me + j for j in range(n)), 2)
    dist.all_to_all_single(out, torch.cat([rows(me, j) for j in range(n)]),
                           [me + j for j in range(n)], [me + j for j in range(n)], group)
    expect(out, torch.cat([rows(j, me) for j in range(n)]), "all_to_all_single, unequal")
    out = torch.zeros(2 * n, 2)
    dist.all_to_all_single(out, data(rank, 2 * n, 2), group=group)
    expect(out, torch.cat([data(r, 2 * n, 2)[2 * me:2 * me + 2] for r in members]),
           "all_to_all_single")
    dist.barrier(group)


def transposed(x):
    return x.t().contiguous().t()


def sliced(x):
    """Every second row and third column of another tensor."""
    whole = torch.zeros(2 * x.size(0), 3 * x.size(1), dtype=x.dtype)
    part = whole[::2, 1::3]
    part.copy_(x)
    return part


def not_contiguous(make):
    """Every operation with tensors, of which no input and no output is contiguous."""
    def block(i, j=0):
        return data(100 * i + j, 3, 4)

    def empty(rows=3):
        out = make(torch.zeros(rows, 4))
        expect(torch.tensor(out.is_contiguous()), torch.tensor(False), "a contiguous tensor")
        return out

    total, outs = fold(torch.add, [block(r) for r in ranks]), [empty() for _ in ranks]
    to_all = torch.cat([block(rank, r) for r in ranks])
    to_me = torch.cat([block(r, rank) for r in ranks])
    wanted = fold(torch.add, [block(r, rank) for r in ranks])

    def one(what, call, x, result):
        call(x)
        expect(x, result, f"{what}, {make.__name__}")

    one("all_reduce", dist.all_reduce, make(block(rank)), total)
    x = make(block(rank))
    dist.reduce(x, 1)
    expect(x, total if rank == 1 else x, "reduce")
    one("broadcast", lambda x: dist.broadcast(x, 1), make(block(rank)), block(1))
    one("all_gather_into_tensor", lambda x: dist.all_gather_into_tensor(x, make(block(rank))),
        empty(3 * size), torch.cat([block(r) for r in ranks]))
    one("scatter", lambda x: dist.scatter(
        x, [make(block(1, r)) for r in ranks] if rank == 1 else None, 1), empty(), block(1, rank))
    one("reduce_scatter", lambda x: dist.reduce_scatter(x, [make(block(rank, r)) for r in ranks]),
        empty(), wanted)
    one("reduce_scatter_tensor", lambda x: dist.reduce_scatter_tensor(x, make(to_all)), empty(),
        wanted)
    one("all_to_all_single", lambda x: dist.all_to_all_single(x, make(to_all)), empty(3 * size),
        to_me)
    one("all_to_all_single, sizes", lambda x: dist.all_to_all_single(
        x, make(to_all), [3] * size, [3] * size), empty(3 * size), to_me)
    dist.all_gather(outs, make(block(rank)))
    expect(torch.cat(outs), torch.cat([block(r) for r in ranks]), "all_gather")
    dist.all_to_all(outs, [make(block(rank, r)) for r in ranks])
    expect(torch.cat(outs), to_me, "all_to_all")
    dist.gather(make(block(rank, 7)), outs if rank == 1 else None, 1)
    if rank == 1:
        expect(torch.cat(outs), torch.cat([block(r, 7) for r in ranks]), "gather")
    x = torch.complex(block(rank), block(rank, 1)).conj().imag  # only marked as negated
    one("all_gather_into_tensor of a view", lambda out: dist.all_gather_into_tensor(out, x),
        empty(3 * size), torch.cat([-block(r, 1) for r in ranks]))


def asynchronous():
    total = fold(torch.add, [data(r, 1000) for r in ranks])
    tensors = [data(rank, 1000) + i for i in range(40)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    for i in reversed(range(40)):
        works[i].wait()
        expect(tensors[i], total + i * size, "asynchronous work")
    x = data(rank, 1000)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    expect(doubled.wait(), 2 * total, "a future")
    out = torch.zeros(size * 10)
    work = dist.all_gather_into_tensor(out, data(rank, 10), async_op=True)
    while not work.is_completed():
        pass
    expect(out, torch.cat([data(r, 10) for r in ranks]), "work that was tested")
    tensors = [data(rank, 1000) + i for i in range(200)]  # more than a team can have outstanding
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    futures = [work.get_future() for work in works[::2]]
    works[199].wait()
    torch.futures.wait_all(futures)
    for i in range(200):
        works[i].wait()
        expect(tensors[i], total + i * size, "much asynchronous work")
    def again(future):  # before the first work has completed, and called in its thread
        inner = dist.all_reduce(future.value()[0], async_op=True).get_future()
        return inner.wait()[0]

    if rank == 0:
        time.sleep(0.5)
    x = data(rank, 1000)
    outer = dist.all_reduce(x, async_op=True).get_future().then(again)
    expect(outer.wait(), total * size, "a future that a callback of another waits for")
    refused_once = f"{sys.argv[1]}.refused"
    while rank == 0 and not os.path.exists(refused_once):
        time.sleep(0.02)
    x = data(rank, 1000)
    work = dist.all_reduce(x, async_op=True)
    if rank == 1:
        refuses("has not completed within 0.1 s", lambda: work.wait(timedelta(seconds=0.1)))
        open(refused_once, "w").close()
    work.wait(timedelta(0))
    expect(x, total, "work after a wait that was too short")
    for _ in range(300):
        dist.barrier(async_op=True)  # dropped
    group = dist.new_group(list(ranks))
    x = data(rank, 1000)
    work = dist.all_reduce(x, group=group, async_op=True)
    first = dist.all_reduce(data(rank, 1000), group=group, async_op=True).get_future()
    first.wait()
    dist.destroy_process_group(group)
    del group, first
    gc.collect()
    expect(work.get_future().wait()[0], total, "a future of work that has outlived its group")


def refuses(text, call):
    try:
        call()
    except Exception as error:
        if text not in str(error):
            print(f"rank {rank}: {text}: {error!r}", flush=True)
            sys.exit(1)
    else:
        sys.exit(f"rank {rank}: not refused: {text}")


def refused():
    two, lists = torch.zeros(2), [[torch.zeros(2)] * (size - 1), [torch.zeros(1)] * size]
    uneven = [torch.zeros(1 + 2 * (r % 2)) for r in ranks]  # together as long as `two` of each rank
    for text, call in (
            (f"{size - 1} tensors for {size}", lambda: dist.all_gather(lists[0], two)),
            ("has 1 elements instead of 2", lambda: dist.all_gather(lists[1], two)),
            (f"{size - 1} tensors for {size}", lambda: dist.gather(two, lists[0], rank)),
            ("has 1 elements instead of 2", lambda: dist.reduce_scatter(two, uneven)),
            ("has 1 elements instead of 2", lambda: dist.scatter(two, uneven, rank)),
            ("tensors for", lambda: dist.all_to_all(lists[1], lists[0])),
            (f"{size + 1} rows is divided into {size}", lambda: dist.all_to_all_single(
                torch.zeros(size), torch.zeros(size + 1), [1] * size)),
            (f"{size + 1} rows is divided into {size}", lambda: dist.all_to_all_single(
                torch.zeros(size), torch.zeros(size + 1), [1] * size, [1] * size)),
            (f"{size + 1} rows is divided into {size}", lambda: dist.all_to_all_single(
                torch.zeros(size + 1, size), torch.zeros(size + 1, size))),
            ("does not convert", lambda: dist.all_gather_into_tensor(
                torch.zeros(size), torch.zeros(1, dtype=torch.int32)))):
        refuses(text, call)
    for text, call in (("dense tensors", lambda: dist.all_reduce(torch.zeros(2).to_sparse())),
                       ("no reduction", lambda: dist.all_reduce(torch.zeros(2, dtype=torch.bool))),
                       ("no operation", lambda: dist.all_reduce(torch.zeros(2),
                                                               dist.ReduceOp.BAND)),
                       ("no average", lambda: dist.all_reduce(torch.zeros(2, dtype=torch.int64),
                                                              dist.ReduceOp.AVG))):
        refuses(text, call)


def death():
    others = [f"{sys.argv[1]}.{r}" for r in ranks if r != 1]
    dist.barrier()
    if rank == 1:
        while not all(os.path.exists(path) for path in others):
            time.sleep(0.02)
        os._exit(0)
    work = dist.all_reduce(torch.ones(10), async_op=True)
    future = work.get_future()
    open(f"{sys.argv[1]}.{rank}", "w").close()
    try:
        work.wait()
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n", end="", flush=True)
    try:
        future.wait()
    except Exception as error:
        print(f"future: {' '.join(str(error).split())}\n", end="", flush=True)


dist.init_process_group("collnet", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size,
                        timeout=timedelta(seconds=50))
if sys.argv[2] == "death":
    death()
else:
    reductions(None, list(ranks))
    movements(None, list(ranks))
    not_contiguous(transposed)
    not_contiguous(sliced)
    asynchronous()
    refused()
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group(list(ranks), timeout=timedelta(days=7)))
    expect(x, torch.full((1,), float(size)), "all_reduce of a group with a long timeout")
    members = [0, 2, 3]
    group = dist.new_group(members)
    if rank in members:
        reductions(group, members)
        movements(group, members)
    dist.barrier()
    del group
    dist.destroy_process_group()
    print(f"right: rank {rank}", flush=True)
