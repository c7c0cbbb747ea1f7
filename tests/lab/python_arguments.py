# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the Python package that are refused, on every rank of a job."""
import array
import copy
import ctypes
import fractions
import math
import pickle
import traceback

import collnet
from python_checks import expect, raises, zeros


class Pair(ctypes.Structure):
    _fields_ = [("number", ctypes.c_long), ("value", ctypes.py_object)]


class Order(ctypes.Structure):
    _fields_ = [("Order", ctypes.c_int)]  # its format has an O, which stands for no object


def wrong_calls(team):
    """Arguments that are refused before the library sees them, and an operation that raises."""
    n = team.size
    four = zeros(4 * n)
    raises(TypeError, "recv: 'list' has no buffer", team.alltoall, four, [])
    raises(BufferError, "recv: the buffer is read-only", team.alltoall, four, bytes(16 * n))
    raises(BufferError, "send: the buffer is not contiguous", team.alltoall,
           memoryview(zeros(8 * n))[::2], four)
    released = memoryview(b"")
    released.release()
    raises(BufferError, "buffer: operation forbidden on released memoryview", team.bcast, released)
    for kind in (ctypes.py_object, Pair):
        raises(TypeError, "send: the buffer has addresses of Python objects", team.allgather,
               kind(), bytearray(ctypes.sizeof(kind) * n))
    team.allgather(Order(7), (Order * n)())
    raises(ValueError, "bytes instead of", team.alltoall, zeros(n), four)
    raises(ValueError, "cannot be divided by", team.alltoall, b"x", bytearray(n + 1))
    raises(ValueError, f"{n - 1} elements, which cannot be divided by {n} ranks", team.alltoall,
           zeros(n - 1), zeros(n - 1))
    raises(TypeError, "items of send have 8 bytes, those of recv 4", team.allreduce, zeros(4, "q"),
           zeros(8), collnet.UserOp(print))
    raises(ValueError, f"the blocks end at {32 * n}", team.alltoallv, four, [4] * n,
           [8 * i + 4 for i in range(n)], four, [4] * n, None)
    raises(ValueError, f"counts for {n} ranks", team.allgatherv, four, four, [1])
    raises(TypeError, "integer", team.allgatherv, four, four, [1.5] * n)
    raises(ValueError, "negative", team.allgatherv, four, four, [-1] * n)
    for rank in (-1, n):
        why = f"there is no rank {rank} in a team of {n}"
        raises(ValueError, f"root: {why}", team.bcast, four, rank)
        raises(ValueError, f"rank: {why}", team.node, rank)
    for window in (-3, 65536, collnet.WINDOW_OFF + 1):
        raises(ValueError, f"window: {window} is not WINDOW_AUTO, WINDOW_OFF or 1 to 65535 frames",
               team.alltoall, four, zeros(4 * n), window=window)
    raises(TypeError, "integer", team.alltoall, four, zeros(4 * n), window=1.5)
    for window in (collnet.WINDOW_AUTO, collnet.WINDOW_OFF, 1, 65535):
        team.alltoall(four, zeros(4 * n), window=window)
    raises(TypeError, "formats of send and recv differ", team.allreduce, zeros(2, "f"), zeros(2))
    raises(ValueError, "send has 8 bytes instead of 4", team.allreduce, zeros(2), zeros(1))
    raises(ValueError, "bytes instead of", team.reduce_scatter, zeros(n + 1), zeros(1))
    raises(ValueError, "elements of 8", team.reduce_scatterv, zeros(2 * n),
           zeros(1 if team.rank == 0 else 3 if team.rank == 1 else 2), [1, 3] + [2] * (n - 2),
           type=collnet.INT32_INT32, op=collnet.MINLOC)
    raises(ValueError, "send has 16 bytes instead of 8", team.allreduce, zeros(2, "q"), zeros(2),
           collnet.UserOp(print))
    characters = "w" if "w" in array.typecodes else "u"  # Python 3.16 has no "u"
    raises(TypeError, "no reduction of the format 'w'", team.allreduce, array.array(characters, "x"),
           array.array(characters, "y"))
    raises(TypeError, "persistent", team.barrier, persistent=True)
    raises(TypeError, "deadline", team.barrier, deadline=1)
    raises(ValueError, "timeout", team.barrier, timeout=0)
    raises(collnet.CollnetError, "no algorithm 'x'", team.barrier, algorithm="x")

    def divide(left, right, out):
        raise ZeroDivisionError("in an operation")

    def largest(left, right, out):
        for i in range(len(out)):
            out[i] = max(left[i], right[i])

    for kind in (ctypes.c_int, ctypes.c_long, ctypes.c_uint16, ctypes.c_double):  # '<i' and others
        out = (kind * 2)()
        team.allreduce((kind * 2)(255 * team.rank, 9), out, collnet.UserOp(largest))
        expect(out, [255 * (n - 1), 9], f"an operation on {kind}")
    request = team.iallreduce(zeros(8), zeros(8), collnet.UserOp(divide))
    for _ in range(2):
        error = raises(ZeroDivisionError, "in an operation", request.wait)
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        expect([names.count("divide"), names.count("wait")], [1, 1], f"functions of {names}")


def wide_integers(context, team):
    """Integers for which the C interface has no room, whose lower bits alone would be right."""
    me, n = team.rank, team.size
    for number in (-1, 65536 + 701, 99999):
        raises(ValueError, f"{number} is not an integer from 0 to 65535", context.endpoint, number)
    with context.endpoint(701) as endpoint:
        raises(ValueError, f"endpoint: {65536 + 701} is not an integer from 0 to 65535",
               endpoint.send, (context.node_name, 65536 + 701), b"lost")
        raises(collnet.CollnetError, "", endpoint.recv, bytearray(4), timeout=0.01)
        raises(TypeError, "integer", endpoint.send, (context.node_name, 701.0), b"")
        raises(ValueError, "to: 'h1' is not a pair of node and number", endpoint.send, "h1", b"")
    wide = 1 << 32
    raises(ValueError, f"{wide + 1} is not an integer from -2147483648 to 2147483647", team.split,
           wide + 1)
    raises(ValueError, "2147483648 is not an integer", team.split, 1 << 31)
    raises(ValueError, "-2147483649 is not an integer", team.split, 0, -(1 << 31) - 1)
    raises(TypeError, "integer", team.split, 1.5)
    raises(ValueError, f"ranks: {wide} is not an integer from 0 to 4294967295", team.from_ranks,
           [wide] + list(range(1, n)))
    raises(ValueError, f"rank: {wide + me} is not", context.team, "x", wide + me, n)
    raises(ValueError, f"size: {wide + n} is not", context.team, "x", me, wide + n)
    raises(ValueError, "rank: -1 is not", context.team, "x", -1, n)
    raises(ValueError, "cluster: 65536 is not", collnet.Context, cluster=1 << 16)
    raises(ValueError, "ethertype: -1 is not", collnet.Context, ethertype=-1)
    raises(ValueError, "mode: 4294967297 is not", collnet.Context, mode=wide + 1)
    raises(ValueError, "mode: 'quick' is not auto, daemon or direct", collnet.Context, mode="quick")
    with collnet.Context(mode="daemon") as other:
        assert other.node_name == context.node_name
    raises(ValueError, "spin: 4294967296 is not", collnet.Context, spin=wide)
    four = zeros(4)
    raises(ValueError, f"{wide + 1} is not", team.allreduce, four, zeros(4), wide + 1)
    raises(ValueError, f"{wide + 3} is not", team.allreduce, four, zeros(4), type=wide + 3)
    for element in (-4, 0, collnet.ELEMENT_MAX + 1):
        raises(ValueError, f"element: {element} is not a number of bytes from 1 to 1048576",
               collnet.UserOp, print, element=element)
    for element in (1.5, "8"):
        raises(TypeError, f"element: {element!r} is not an integer", collnet.UserOp, print,
               element=element)
    raises(TypeError, "function: None is not callable", collnet.UserOp, None)
    raises(TypeError, "function: 3 is not callable", collnet.set_log, 3)
    raises(ValueError, f"displacements: {1 << 66} is not", team.allgatherv, b"", bytearray(4),
           [0] * n, [1 << 66] * n)
    raises(ValueError, f"{1 << 64} is not", context.alloc, 1 << 64)


def wrong_types(context, team):
    """The message names the argument and what is expected of it."""
    n, four = team.size, zeros(4 * team.size)

    def wrong(text, function, *arguments, kind=TypeError, **options):
        raises(kind, text, function, *arguments, **options)

    for root in ("a", None, 0.0):
        wrong(f"root: {root!r} is not an integer", team.bcast, four, root)
        wrong(f"rank: {root!r} is not an integer", team.node, root)
        wrong(f"color: {root!r} is not an integer", team.split, root)
    wrong("key: 'a' is not an integer", team.split, 0, "a")
    wrong("number: 'a' is not an integer", context.endpoint, "a")
    wrong("size: 1.5 is not an integer", context.alloc, 1.5)
    wrong("size: '1' is not an integer", context.alloc, "1")
    for op in ("sum", max, None):
        wrong(f"op: {op!r} is not an operation such as SUM, or a UserOp", team.allreduce, four,
              zeros(4 * n), op)
        wrong("op: ", team.reduce_scatterv, four, zeros(4), [4] * n, op)
    wrong("type: 'f8' is not a type such as FLOAT64", team.allreduce, four, zeros(4 * n),
          collnet.SUM, "f8")
    wrong("window: '4' is not an integer", team.alltoall, four, zeros(4 * n), window="4")
    wrong("barrier() has no argument 'foo'", team.barrier, foo=1)
    wrong("bcast() has no argument 'foo'", team.ibcast, four, foo=1)

    # Times.
    done = team.ibarrier()
    done.wait()
    for call in (team.barrier, lambda timeout: collnet.Context(timeout=timeout), done.wait,
                 lambda timeout: collnet.waitall([done], timeout),
                 lambda timeout: collnet.waitany([done], timeout)):
        for timeout in ("1", b"1", [1]):
            wrong(f"timeout: {timeout!r} is not a number of seconds", call, timeout=timeout)
        wrong("timeout: nan is not a number of seconds", call, kind=ValueError, timeout=math.nan)
    for timeout in (-1, -math.inf, 1e308, fractions.Fraction(1, 2), True):
        expect([done.wait(timeout), team.ibarrier().wait(timeout) in (True, False)], [True] * 2,
               f"a wait of {timeout}")

    # Text.
    wrong("algorithm: 3 is not a string", team.barrier, algorithm=3)
    wrong("job: 3 is not a string", context.team, job=3)
    wrong("secret: 3 is not a string", context.team, secret=3)
    for option in ("socket", "interface", "link", "node", "topology", "encapsulation", "peers"):
        wrong(f"{option}: 3 is not a string", collnet.Context, **{option: 3})
    wrong("job: 'a\\x00b' has a NUL", context.team, kind=ValueError, job="a\0b")
    with context.endpoint() as endpoint:
        for name in (3, None):
            wrong(f"to: {name!r} is not a string", endpoint.send, (name, 1), b"")
        for length in (64, 300):
            wrong(f"to: a name of {length} bytes; 63 are the most", endpoint.send,
                  ("h" * length, 1), b"", kind=ValueError)

    # Sequences.
    wrong("the counts of send: 1 is not a sequence of integers", team.alltoallv, four, 1, None,
          four, [4] * n, None)
    wrong("the counts of recv: 1.5 is not an integer", team.alltoallv, four, [4] * n, None, four,
          [1.5] * n, None)
    wrong("the counts of send: [4] is not an integer", team.alltoallv, four, [[4]] * n, None, four,
          [4] * n, None)
    wrong("the displacements of recv: 'a' is not an integer", team.allgatherv, four, four, [4] * n,
          "a" * n)
    wrong("ranks: 3 is not a sequence of integers", team.from_ranks, 3)
    wrong("ranks: 'a' is not an integer", team.from_ranks, "ab")
    for call in (collnet.waitall, collnet.waitany):
        wrong("requests: 3 is not a sequence of requests", call, 3)
        wrong("requests: 1 is not a request", call, [None, 1])


def copies(context, team):
    """What belongs to the library has one owner."""
    with context.endpoint() as endpoint:
        request = endpoint.irecv(bytearray(1))
        for owner in (context, team, endpoint, request, team.ibarrier()):
            for copier in (copy.copy, copy.deepcopy, pickle.dumps):
                raises(TypeError, f"a {type(owner).__name__} cannot be copied or pickled", copier,
                       owner)


with collnet.Context() as context, context.team() as team:
    wrong_calls(team)
    wide_integers(context, team)
    wrong_types(context, team)
    copies(context, team)
    team.barrier()
    print(f"right: rank {team.rank}", flush=True)
