# SPDX-License-Identifier: BSD-2-Clause
"""
The Python package, on every rank of a job: python_calls.py SEED calls | death.

calls compares every operation with a model in plain Python. death: rank 1 ends without a word, and
the others get an exception that names its node.
"""
import array
import ctypes
import gc
import itertools
import math
import operator
import os
import random
import signal
import sys
import threading
import time

import collnet

try:
    import numpy
except ImportError:
    numpy = None

seed = int(sys.argv[1])
count = itertools.count()


def values(rank, n, code="i"):
    """What a rank sends in the operation of this number."""
    draw = random.Random(f"{seed}.{next_call}.{rank}")
    return array.array(code, [draw.randrange(100) for _ in range(n)])


def zeros(n, code="i"):
    return array.array(code, [77] * n)


def expect(got, wanted, what):
    got, wanted = list(got), list(wanted)
    if got != wanted:
        sys.exit(f"rank {rank}: {what}: {got} instead of {wanted}")


def raises(kind, text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        if text not in str(error):
            sys.exit(f"rank {rank}: '{error}' does not have '{text}'")
        return error
    sys.exit(f"rank {rank}: no exception with '{text}'")


def operations(team):
    """Every operation in its versions: name, arguments, the buffer of the result, its model."""
    global next_call
    me, n = team.rank, team.size
    ranks = range(n)

    def block(data, i, length):
        return data[i * length:(i + 1) * length]

    for length in (0, 1, 700):
        for inplace in (False, True):
            next_call = next(count)
            all_send = [values(r, n * length) for r in ranks]
            recv = array.array("i", all_send[me]) if inplace else zeros(n * length)
            yield ("alltoall", (collnet.IN_PLACE if inplace else all_send[me], recv), recv,
                   [x for r in ranks for x in block(all_send[r], me, length)])

            one = [values(r, length) for r in ranks]
            recv = zeros(n * length)
            if inplace:
                recv[me * length:(me + 1) * length] = one[me]
            send = collnet.IN_PLACE if inplace else one[me]
            yield "allgather", (send, recv), recv, [x for r in ranks for x in one[r]]

            root = next_call % n
            recv = zeros(n * length)
            if me == root and inplace:
                recv[me * length:(me + 1) * length] = one[me]
            send = collnet.IN_PLACE if inplace and me == root else one[me]
            yield ("gather", (send, recv if me == root else None, root), recv,
                   [x for r in ranks for x in one[r]] if me == root else recv)

            recv = zeros(length)
            send = array.array("i", all_send[root]) if me == root else None
            if inplace and me == root:
                yield "scatter", (send, collnet.IN_PLACE, root), send, all_send[root]
            else:
                yield "scatter", (send, recv, root), recv, block(all_send[root], me, length)

        buffer = array.array("i", one[root]) if me == root else zeros(length)
        yield "bcast", (buffer, root), buffer, one[root]

    # Blocks of any size: rank i sends (i + 2 j + c) % 5 elements to rank j, at a distance.
    for inplace in (False, True):
        next_call = next(count)
        root = next_call % n
        sizes = [[(i + 2 * j + next_call) % 5 for j in ranks] for i in ranks]
        if inplace:  # the exchange must fit the same blocks
            sizes = [[(i * j + next_call) % 5 for j in ranks] for i in ranks]
        data = [values(r, 8 * n) for r in ranks]
        displs = [8 * j for j in ranks]
        got = [sizes[r][me] for r in ranks]
        recv = array.array("i", data[me]) if inplace else zeros(8 * n)
        wanted = list(recv)
        for r in ranks:
            wanted[8 * r:8 * r + got[r]] = data[r][8 * me:8 * me + got[r]]
        yield ("alltoallv", (collnet.IN_PLACE if inplace else data[me], sizes[me], displs, recv,
                             got, displs), recv, wanted)

        own = [sizes[0][r] for r in ranks]
        one = [data[r][:own[r]] for r in ranks]
        packed = [x for r in ranks for x in one[r]]
        recv = zeros(sum(own))
        at = sum(own[:me])
        if inplace:
            recv[at:at + own[me]] = one[me]
        yield ("allgatherv", (collnet.IN_PLACE if inplace else one[me], recv, own), recv, packed)

        recv = zeros(8 * n)
        wanted = list(recv)
        for r in ranks:
            wanted[8 * r:8 * r + own[r]] = one[r]
        if me == root and inplace:
            recv[8 * me:8 * me + own[me]] = one[me]
        send = collnet.IN_PLACE if inplace and me == root else one[me]
        yield ("gatherv", (send, recv if me == root else None, own, displs, root), recv,
               wanted if me == root else recv)

        recv = zeros(own[me])
        send = array.array("i", data[root]) if me == root else None
        wanted = data[root][8 * me:8 * me + own[me]]
        if inplace and me == root:
            yield "scatterv", (send, own, displs, collnet.IN_PLACE, root), send, data[root]
        else:
            yield "scatterv", (send, own, displs, recv, root), recv, wanted

    def shifted(left, right, out):  # not commutative: matrices of two rows
        for i in range(0, len(out), 4):
            a, b = list(left[i:i + 4]), list(right[i:i + 4])
            out[i:i + 4] = array.array("q", [
                (a[0] * b[0] + a[1] * b[2]) % 997, (a[0] * b[1] + a[1] * b[3]) % 997,
                (a[2] * b[0] + a[3] * b[2]) % 997, (a[2] * b[1] + a[3] * b[3]) % 997])

    def shift(a, b):
        out = zeros(len(a), "q")
        shifted(a, b, out)
        return out

    def least(left, right, out):
        for i in range(len(out)):
            out[i] = min(left[i], right[i])

    def each(function):
        return lambda a, b: [function(x, y) for x, y in zip(a, b)]

    for code, op, model in (
            ("q", collnet.SUM, each(operator.add)), ("d", collnet.SUM, each(operator.add)),
            ("f", collnet.MAX, each(max)), ("B", collnet.BXOR, each(operator.xor)),
            ("h", collnet.MIN, each(min)), ("I", collnet.BOR, each(operator.or_)),
            ("d", collnet.UserOp(least), each(min)),
            ("q", collnet.UserOp(Matrix(shifted), commutative=False, element=32), shift)):
        for inplace in (False, True):
            next_call = next(count)
            root = next_call % n
            length = 24
            data = [values(r, n * length, code) for r in ranks]
            part = [block(data[r], 0, length) for r in ranks]

            def fold(items):
                total = items[0]
                for item in items[1:]:
                    total = model(total, item)
                return total

            def buffers():
                recv = array.array(code, part[me]) if inplace else zeros(length, code)
                return collnet.IN_PLACE if inplace else part[me], recv

            send, recv = buffers()
            yield "allreduce", (send, recv, op), recv, fold(part)
            send, recv = buffers()
            if me != root:
                send, recv = part[me], None
            yield "reduce", (send, recv, op, root), recv or (), fold(part) if me == root else ()
            send, recv = buffers()
            yield "scan", (send, recv, op), recv, fold(part[:me + 1])
            send, recv = buffers()
            yield "exscan", (send, recv, op), recv if me else (), fold(part[:me]) if me else ()
            recv = zeros(length, code)
            yield ("reduce_scatter", (data[me], recv, op), recv,
                   fold([block(data[r], me, length) for r in ranks]))
            sizes = [4 * ((r + next_call) % 4) for r in ranks]
            at = sum(sizes[:me])
            recv = zeros(sizes[me], code)
            yield ("reduce_scatterv", (data[me][:sum(sizes)], recv, sizes, op), recv,
                   fold([data[r][at:at + sizes[me]] for r in ranks]))
    yield "barrier", (), (), ()


class Matrix:
    """An operation whose elements are longer than the buffer's: it gets bytes."""

    def __init__(self, function):
        self.function = function

    def __call__(self, left, right, out):
        self.function(left.cast("q"), right.cast("q"), out.cast("q"))


def all_operations(team):
    called = set()
    for name, arguments, recv, wanted in operations(team):
        getattr(team, name)(*arguments)
        expect(recv, wanted, name)
        called.add(name)
    pending = []
    for name, arguments, recv, wanted in operations(team):
        pending.append((getattr(team, "i" + name)(*arguments), name, recv, wanted))
        del arguments  # the request keeps what it needs
        if len(pending) == 16:
            if not collnet.waitall([p[0] for p in pending]):
                sys.exit("waitall without a limit gave up")
            for request, name, recv, wanted in pending:
                if not request.test():
                    sys.exit("a completed request is outstanding")
                expect(recv, wanted, "i" + name)
            pending = []
    collnet.waitall([p[0] for p in pending])
    for _, name, recv, wanted in pending:
        expect(recv, wanted, "i" + name)
    missing = {name[1:] for name in dir(team) if name.startswith("i") and
               hasattr(team, name[1:])} - called
    if missing:
        sys.exit(f"not called: {missing}")


def other_calls(context, team):
    global next_call
    me, n = team.rank, team.size
    next_call = next(count)
    nodes = [team.node(r) for r in range(n)]
    if nodes[me] != context.node_name or len(set(nodes)) != team.nodes:
        sys.exit(f"nodes: {nodes}, {context.node_name}")

    # Persistent: the same buffers, other contents.
    send, recv = zeros(n), zeros(n)
    request = team.ialltoall(send, recv, persistent=True, timeout=float("inf"))
    for i in range(3):
        send[:] = array.array("i", [100 * i + 10 * me + r for r in range(n)])
        request.start().wait()
        expect(recv, [100 * i + 10 * r + me for r in range(n)], "a persistent operation")
    request.free()
    error = raises(collnet.CollnetError, "the request has been freed", request.start)
    expect([error.code], [collnet.EINVAL], "the code of a freed request")
    request = team.ibarrier()
    for _ in range(2):  # outstanding, and completed
        raises(collnet.CollnetError, "the request is not persistent", request.start)
        request.wait()

    # Memory of the context, which outlives its names, the context's included.
    memory = context.alloc(8 * n)
    part = memory[8 * me:8 * me + 8].cast("d")
    part[0] = me + 0.5
    team.allgather(collnet.IN_PLACE, memory)
    expect(memory.cast("d"), [r + 0.5 for r in range(n)], "memory of the context")
    del part
    for _ in range(200):  # more than there can be at once
        context.alloc(1 << 20)[0] = 1
    expect([len(context.alloc(0))], [0], "no memory")
    raises(ValueError, "size: -1 is not a number of bytes", context.alloc, -1)
    gc.collect()

    # Teams of a team.
    odd = team.split(me % 2, -me)
    expect([odd.rank, odd.size], [[r for r in range(n)[::-1] if r % 2 == me % 2].index(me),
                                  len(range(me % 2, n, 2))], "split")
    recv = zeros(odd.size)
    odd.allgather(array.array("i", [me]), recv)
    expect(recv, range(n)[me % 2::2][::-1], "allgather of a split team")
    left = odd.ibarrier(persistent=True)
    odd.destroy()
    for call in (odd.barrier, odd.dup, left.start):
        raises(collnet.CollnetError, "left the team", call)
    if team.split(-1) is not None:
        sys.exit("a team without a color")
    with team.dup() as twin:
        twin.barrier(timeout=5)
    if me in (0, n - 1):
        with team.from_ranks([n - 1, 0]) as pair:
            expect([pair.rank], [0 if me else 1], "from_ranks")
            pair.barrier()

    # Endpoints, and a receive that has not completed.
    with context.endpoint(700) as endpoint:
        for to in ("x", 700, (nodes[me], 700, 0)):
            raises(ValueError, "is not a pair of node and number", endpoint.send, to, b"")
        team.barrier()
        data = bytearray(100)
        receive = endpoint.irecv(data)
        if collnet.waitany([None, receive], 0) is not None or receive.wait(0.01):
            sys.exit("a message from nowhere")
        team.barrier()
        endpoint.send((nodes[(me + 1) % n], 700), b"from %d" % me)
        if collnet.waitany([None, receive]) != 1:
            sys.exit("waitany")
        expect([bytes(data[:receive.bytes]), receive.source],
               [b"from %d" % ((me - 1) % n), (nodes[(me - 1) % n], 700)], "a message")
        endpoint.isend((nodes[(me + 1) % n], 700), b"x" * 8).wait()
        error = raises(collnet.CollnetError, "", endpoint.recv, bytearray(4))
        expect([error.code], [collnet.ETRUNC], "the code of a long message")

        began = time.monotonic()
        error = raises(collnet.CollnetError, "", endpoint.recv, bytearray(4), timeout=0.1)
        expect([error.code, 0.09 < time.monotonic() - began < 5], [collnet.ETIMEOUT, True],
               "a deadline")

        # A signal interrupts a call, whose buffer is held until its request has ended.
        alarm()
        raises(InterruptedError, "by a signal", endpoint.recv, data)
        raises(BufferError, "", data.extend, b"x")
        team.barrier()
    gc.collect()
    expect([len(context.requests)], [0], "requests of a closed endpoint")
    raises(collnet.CollnetError, "the endpoint is closed", endpoint.send, endpoint.address, data)
    raises(collnet.CollnetError, "the endpoint is closed", endpoint.recv, data)
    data.extend(b"x")

    stats = context.stats()
    if stats["data_sent"] == 0 or "zero" in stats or "size" in stats or {x["name"] for x in context.nodes()} != set(nodes):
        sys.exit(f"{stats} {context.nodes()}")
    if [job["ranks"] for job in context.jobs()] != [n]:
        sys.exit(f"{context.jobs()}")
    return memory


def alarm():
    """A signal comes soon, whose handler raises an exception."""
    def stop(*_):
        raise InterruptedError("by a signal")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def waits(team):
    """A waitany() that is refused collects no request, and waitall() waits for all."""
    recv = zeros(8)
    request = team.iallreduce(zeros(8), recv)
    with collnet.Context() as other, other.endpoint() as endpoint:
        message = endpoint.irecv(bytearray(1))
        raises(collnet.CollnetError, "another context", collnet.waitany, [request, message])
        expect([request._active], [True], "a request in a call that was refused")
    request.wait()
    expect(recv, [77 * team.size] * 8, "its result")
    two = [team.iallreduce(zeros(1), zeros(1), collnet.UserOp(lambda left, right, out: 1 / 0)),
           team.iallreduce(zeros(8), recv)]
    raises(ZeroDivisionError, "", collnet.waitall, two)
    expect([request._active for request in two], [False] * 2, "requests after waitall()")
    for wait in (lambda request: request.wait(math.inf),
                 lambda request: collnet.waitall([request], math.inf),
                 lambda request: collnet.waitany([request], math.inf) == 0):
        expect([wait(team.iallreduce(zeros(8), recv))], [True], "a wait without an end")
    for _ in range(200):  # more than a team may have outstanding, dropped
        team.ibarrier()
        team.barrier()
    expect([len(team._context.requests) <= 32], [True], "requests that were dropped")
    raises(TypeError, "mode: 'direct' is not an integer", collnet.Context, mode="direct")
    raises(ValueError, "has a NUL", collnet.Context, socket="a\0b")
    raises(ValueError, "of at most 4294967", collnet.Context, timeout=5e6)


def interrupted(team):
    """A signal that comes before a wait collects the operation: its request is not another's."""
    other, copy = team.dup(), team.dup()
    team.barrier()
    if team.rank == 0:
        alarm()
        raises(InterruptedError, "by a signal", copy.barrier)
    else:
        time.sleep(0.1)  # within the slice of the wait that the signal came in
        copy.barrier()
    request = other.ibarrier()
    time.sleep(0.3)
    copy.destroy()
    request.wait()
    other.destroy()


def interrupted_join(team):
    """A signal interrupts a rank that joins a team. When the others come, it leaves."""
    with collnet.Context() as other:
        if team.rank == 0:
            alarm()
            began = time.monotonic()
            raises(InterruptedError, "by a signal", other.team, "late", 0, 2)
            expect([time.monotonic() - began < 10], [True], "an interrupted join")
        team.barrier()
        if team.rank == 1:
            late = other.team("late", 1, 2)
            raises(collnet.CollnetError, "rank 0 on node h0 left the team", late.barrier)
        team.barrier()
        expect([len(other.requests)], [0], "of a join that has ended")
    # Interrupted before it waits, and its context closed before the join has ended.
    start = threading.Thread.start

    def start_and_stop(thread):
        start(thread)
        raise InterruptedError("by a signal")

    with collnet.Context() as other:
        threading.Thread.start = start_and_stop
        try:
            raises(InterruptedError, "by a signal", other.team, f"nobody{team.rank}", 0, 2, 1)
        finally:
            threading.Thread.start = start


def wrong_calls(team):
    """Arguments that are refused before the library sees them, and an operation that raises."""
    n = team.size
    four = zeros(4 * n)
    raises(TypeError, "recv: 'list' has no buffer", team.alltoall, four, [])
    raises(BufferError, "recv: the buffer is read-only", team.alltoall, four, bytes(16 * n))
    raises(BufferError, "send: the buffer is not contiguous", team.alltoall,
           memoryview(zeros(8 * n))[::2], four)
    raises(ValueError, "bytes instead of", team.alltoall, zeros(n), four)
    raises(ValueError, "cannot be divided by", team.alltoall, b"x", bytearray(n + 1))
    raises(ValueError, f"the blocks end at {32 * n}", team.alltoallv, four, [4] * n,
           [8 * i + 4 for i in range(n)], four, [4] * n, None)
    raises(ValueError, f"counts for {n} ranks", team.allgatherv, four, four, [1])
    raises(TypeError, "integer", team.allgatherv, four, four, [1.5] * n)
    raises(ValueError, "negative", team.allgatherv, four, four, [-1] * n)
    raises(ValueError, "no rank", team.bcast, four, n)
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
    raises(TypeError, "no reduction of the format 'w'", team.allreduce, array.array("u", "x"),
           array.array("u", "y"))
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
    raises(ZeroDivisionError, "in an operation", team.allreduce, zeros(8), zeros(8),
           collnet.UserOp(divide))


def others_declarations():
    """Functions of Python that other modules declare their own way."""
    function = ctypes.pythonapi.PyObject_GetBuffer
    if function.argtypes is not None:
        sys.exit("the package declares a function of Python for others, too")
    function.argtypes = [ctypes.py_object, ctypes.c_char_p, ctypes.c_int]


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
    wide = 1 << 32
    raises(ValueError, f"{wide + 1} is not an integer from -2147483648 to 2147483647", team.split,
           wide + 1)
    raises(ValueError, "2147483648 is not an integer", team.split, 1 << 31)
    raises(ValueError, "-2147483649 is not an integer", team.split, 0, -(1 << 31) - 1)
    raises(TypeError, "integer", team.split, 1.5)
    raises(ValueError, f"ranks: {wide} is not an integer from 0 to 4294967295", team.from_ranks,
           [wide] + list(range(1, n)))
    raises(ValueError, f"rank: {wide + me} is not", context.team, "x", wide + me, n)
    raises(ValueError, f"ranks: {wide + n} is not", context.team, "x", me, wide + n)
    raises(ValueError, "rank: -1 is not", context.team, "x", -1, n)
    raises(ValueError, "cluster: 65536 is not", collnet.Context, cluster=1 << 16)
    raises(ValueError, "ethertype: -1 is not", collnet.Context, ethertype=-1)
    raises(ValueError, "mode: 4294967297 is not", collnet.Context, mode=wide + 1)
    raises(ValueError, "spin: 4294967296 is not", collnet.Context, spin=wide)
    four = zeros(4)
    raises(ValueError, f"{wide + 1} is not", team.allreduce, four, zeros(4), wide + 1)
    raises(ValueError, f"{wide + 3} is not", team.allreduce, four, zeros(4), type=wide + 3)
    raises(ValueError, "element: -4 is not", team.allreduce, four, zeros(4),
           collnet.UserOp(print, element=-4))
    raises(ValueError, f"displacements: {1 << 66} is not", team.allgatherv, b"", bytearray(4),
           [0] * n, [1 << 66] * n)
    raises(ValueError, f"{1 << 64} is not", context.alloc, 1 << 64)


def with_numpy(team):
    global next_call
    next_call = next(count)
    n = team.size
    x = numpy.arange(12.0).reshape(3, 4) + team.rank
    y = numpy.empty_like(x)
    team.allreduce(x, y)
    expect(y.ravel(), (numpy.arange(12.0) * n + n * (n - 1) / 2), "NumPy")
    z = (x + 1j * x).astype("c8")
    team.allreduce(collnet.IN_PLACE, z)
    expect(z.ravel(), (1 + 1j) * y.ravel(), "complex numbers")
    flags = numpy.array([team.rank == 0, False, True])
    team.allreduce(collnet.IN_PLACE, flags, collnet.LOR)
    expect(flags, [True, False, True], "booleans")
    raises(TypeError, "no reduction of the format '?'", team.allreduce, flags, flags)
    raises(TypeError, "no reduction of the format '>i'", team.allreduce, numpy.zeros(1, ">i4"),
           numpy.zeros(1, ">i4"))
    raises(BufferError, "not contiguous", team.allreduce, x.T, y.T)
    pairs = numpy.array([(5, team.rank), (team.rank, 7)], "i4,i4")
    out = numpy.empty_like(pairs)
    team.allreduce(pairs, out, collnet.MAXLOC, type=collnet.INT32_INT32)
    expect(out.tolist(), [(5, 0), (n - 1, 7)], "pairs")


def threads(team):
    """Threads with teams of their own, of one context."""
    failures = []

    def run(own, number):
        try:
            for i in range(50):
                recv = zeros(3)
                own.allreduce(array.array("i", [own.rank, i, number]), recv)
                n = own.size
                if list(recv) != [n * (n - 1) // 2, n * i, n * number]:
                    failures.append(recv)
        except Exception as error:  # of another thread than that which can exit
            failures.append(error)

    teams = [team.dup() for _ in range(3)]
    running = [threading.Thread(target=run, args=(own, i)) for i, own in enumerate(teams)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    expect(failures, [], "threads")


def closed(team):
    """A context is closed while a thread waits in it."""
    for i in range(10):
        context = collnet.Context()
        own = context.team(job=f"closed-{seed}-{i}", rank=team.rank, size=team.size)
        if team.rank == 0:
            request, ends = own.ibarrier(), []

            def wait():
                try:
                    request.wait()
                except collnet.CollnetError as error:
                    ends.append(error.code)

            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.002 * i)
            context.close()
            thread.join(10)
            expect(ends, [collnet.Status.ERANK], "the end of a wait in a closed context")
        team.barrier()
        context.close()


def death(team):
    memory = zeros(1000)
    try:
        team.barrier()
        if team.rank == 1:
            os._exit(0)
        while True:
            team.allreduce(memory, zeros(1000))
    except collnet.CollnetError as error:
        print(f"{type(error).__name__} {error.code.name}: {error}", flush=True)


next_call = 0
with collnet.Context() as context, context.team() as team:
    rank = team.rank
    kept = None
    if sys.argv[2] == "death":
        death(team)
    else:
        others_declarations()
        all_operations(team)
        kept = other_calls(context, team)
        waits(team)
        interrupted(team)
        interrupted_join(team)
        wrong_calls(team)
        wide_integers(context, team)
        threads(team)
        closed(team)
        if numpy is not None:
            with_numpy(team)
        team.barrier()
        print(f"right: rank {rank}", "with NumPy" if numpy else "without NumPy", flush=True)
context.close()
if kept is not None:
    expect(kept.cast("d"), [r + 0.5 for r in range(team.size)], "memory of a closed context")
    raises(collnet.CollnetError, "closed", context.alloc, 1)
