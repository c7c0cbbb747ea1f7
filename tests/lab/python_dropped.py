# SPDX-License-Identifier: BSD-2-Clause
"""
Direct mode, two ranks: a program drops a context in which an operation is outstanding. The library's
thread completes it, and writes to the buffers, which no other object may have got.
"""
import gc
import os

import collnet
from python_checks import await_file, expect, rank, remove

N = 1 << 20
DONE = "dropped"


def drop():
    team = collnet.Context().team()
    if rank == "0":
        remove(DONE)
    team.barrier()
    team.iallgather(b"\x5a" * N, bytearray(2 * N), timeout=60)


if rank == "0":
    drop()
    gc.collect()
    others = [bytearray(2 * N) for _ in range(4)]
    await_file(DONE)
    expect([other.count(0) for other in others], [2 * N] * 4, "zeros in other objects")
    print("right: rank 0", flush=True)
    os._exit(0)  # the other rank has all it needs
with collnet.Context() as context, context.team() as team:
    team.barrier()
    recv = bytearray(2 * N)
    team.allgather(b"\xa5" * N, recv, timeout=60)
    expect([recv.count(0x5a), recv.count(0xa5)], [N, N], "what was gathered")
    open(DONE, "w").close()
    print("right: rank 1", flush=True)
