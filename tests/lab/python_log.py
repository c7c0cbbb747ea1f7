# SPDX-License-Identifier: BSD-2-Clause
"""
The function of the log, in direct mode, in which the library writes lines: it must not call the
library, and is not called when the interpreter has ended.
"""
import ctypes
import os

import collnet
from python_checks import expect, rank

lines, refused = [], []


def log(level, line):
    lines.append(line)
    for call in (context.stats, context.nodes, team.barrier, lambda: collnet.set_log(None)):
        try:
            call()
        except collnet.CollnetError as error:
            refused.append(str(error))


with collnet.Context() as context:
    team = context.team(f"first-{rank}", 0, 1)
    collnet.set_log(log)
    context.team(f"second-{rank}", 0, 1)
    expect([any(f"job second-{rank}: 1 rank on 1 node" in line for line in lines)], [True], "a line")
    expect([len(refused) >= 4], [True], "calls of the log's function")
    expect(set(refused), ["the function of set_log() must not call collnet"], "why it is refused")
    team.barrier()

# exit() calls collnet_open(), with the status as its options, after the interpreter has ended. As
# link packet uses no peers, the library writes a line.
os.environ.update(COLLNET_PEERS="h0", COLLNET_LINK="packet")
libc = ctypes.CDLL(None)
libc.on_exit.argtypes = [ctypes.c_void_p] * 2
libc.malloc.restype = ctypes.c_void_p
libc.on_exit(ctypes.cast(collnet.library.raw.collnet_open, ctypes.c_void_p), libc.malloc(64))
print(f"right: rank {rank}", flush=True)
