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
import operator
import os
import random
import sys
import threading
import time

import collnet
from python_checks import alarm, expect, raises, zeros

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


def views(team):
    """What a user-defined operation keeps of its arguments is not the library's memory."""
    kept, arrays = [], []

    def least(left, right, out):
        kept.extend((left, right, out))
        for i in range(len(out)):
            out[i] = min(left[i], right[i])

    def least_of_arrays(left, right, out):  # which hold the views
        arrays.extend(numpy.frombuffer(view, "i") for view in (left, right, out))
        numpy.minimum(arrays[-3], arrays[-2], arrays[-1])

    recv = zeros(3)
    team.allreduce(array.array("i", [team.rank, 5, -team.rank]), recv, collnet.UserOp(least))
    expect(recv, [0, 5, 1 - team.size], "an operation that keeps its views")
    expect([len(kept) >= 3], [True], "views")
    for view in kept:
        raises(ValueError, "released", view.tolist)
    if numpy is not None:
        team.allreduce(recv, zeros(3), collnet.UserOp(least_of_arrays))


def calls_of_operations(context, team):
    """A user-defined operation must not call the library, which would wait for itself."""
    error = raises(collnet.CollnetError, "a reduction's function must not call collnet",
                   team.allreduce, zeros(1), zeros(1), collnet.UserOp(lambda *_: team.barrier()))
    expect([error.code], [collnet.EINVAL], "the code of a call in an operation")
    endpoint, request = context.endpoint(), team.ibarrier()
    prepared = team.ibarrier(persistent=True)
    calls = [collnet.Context, context.close, context.stats, context.nodes, context.endpoint,
             team.barrier, team.dup, team.destroy, endpoint.close, request.test, request.wait, prepared.start,
             prepared.free, lambda: context.alloc(1), lambda: context.team("x", 0, 2),
             lambda: collnet.waitall([request]), lambda: collnet.waitany([request]),
             lambda: endpoint.send(endpoint.address, b""), lambda: endpoint.recv(bytearray(1)),
             lambda: collnet.set_log(None)]
    called = []

    def function(left, right, out):
        context.many = 0  # the next request looks for completed ones
        called.append(0)
        for call in calls:
            raises(collnet.CollnetError, "a reduction's function must not call collnet", call)
        out[0] = left[0] + right[0]

    recv = zeros(1)
    team.allreduce(array.array("i", [1]), recv, collnet.UserOp(function))
    expect([recv[0], len(called) > 0], [team.size, True], "an operation that calls the library")
    request.wait()
    prepared.start().wait()
    prepared.free()
    endpoint.close()


def others_declarations():
    """Functions of Python that other modules declare their own way."""
    function = ctypes.pythonapi.PyObject_GetBuffer
    if function.argtypes is not None:
        sys.exit("the package declares a function of Python for others, too")
    function.argtypes = [ctypes.py_object, ctypes.c_char_p, ctypes.c_int]


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
    raises(TypeError, "the counts of send: array([1]) is not an integer", team.alltoallv, x,
           numpy.ones((n, 1), int), None, y, [1] * n, None)
    raises(TypeError, f"the counts of send: {numpy.float64(1)!r} is not an integer",
           team.alltoallv, x, numpy.ones(n), None, y, [1] * n, None)
    team.barrier(timeout=numpy.float32(5))
    root = numpy.uint8(n - 1)
    if team.rank == root:
        blocks = numpy.full((n, 30000), team.rank, "u1")
        team.gather(collnet.IN_PLACE, blocks, root)
        expect(blocks[:, -1], range(n), "a gather")
    else:
        team.gather(numpy.full(30000, team.rank, "u1"), None, root)
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
        views(team)
        calls_of_operations(context, team)
        all_operations(team)
        kept = other_calls(context, team)
        threads(team)
        if numpy is not None:
            with_numpy(team)
        team.barrier()
        print(f"right: rank {rank}", "with NumPy" if numpy else "without NumPy", flush=True)
context.close()
if kept is not None:
    expect(kept.cast("d"), [r + 0.5 for r in range(team.size)], "memory of a closed context")
    raises(collnet.CollnetError, "closed", context.alloc, 1)
