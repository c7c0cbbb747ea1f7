# SPDX-License-Identifier: BSD-2-Clause
"""Signals whose handlers raise exceptions, on every rank of a job."""
import array
import random
import signal
import sys

import collnet
from python_checks import await_file, expect, raises, remove, signal_soon, zeros


EXACT = sys.version_info >= (3, 10)  # 3.9 looks at signals before nearly all instructions


class Stop(Exception):
    """What the handler raises."""


def add(left, right, out):
    for i in range(len(out)):
        out[i] = left[i] + right[i]


def ones():
    return array.array("i", [1] * 4)


def at_a_function(context, team):
    """
    A signal comes in a wait, and the library calls a reduction's function next. The exception is that
    of the operation, and the handler is refused calls of the library.
    """
    def stop(*_):
        if EXACT:
            raises(collnet.CollnetError, "must not call collnet", context.stats)
        raise Stop

    signal.signal(signal.SIGALRM, stop)
    recv = zeros(4)
    request = team.ireduce(ones(), recv, collnet.UserOp(add), persistent=True)
    if team.rank == 0:
        remove("at-a-function")
    team.barrier()
    if team.rank == 0:
        request.start()
        signal_soon("at-a-function")
        for _ in range(2):
            raises(Stop, "", request.wait)
    else:
        await_file("at-a-function")  # within the slice of the wait that the signal came in
        request.start().wait()
    request.start().wait()  # another time, without a signal
    expect(recv, [team.size if team.rank == 0 else 77] * 4, "a reduction after a signal")
    request.free()


class Signals:
    """Signals that come at any time in a function, and their exceptions."""

    def __init__(self, seed):
        self.pauses = random.Random(seed)
        self.armed = False
        self.raised = self.caught = 0
        signal.signal(signal.SIGALRM, self.stop)

    def stop(self, *_):
        if self.armed:
            self.armed = False
            self.raised += 1
            raise Stop

    def run(self, function):
        try:
            self.armed = True
            most = self.pauses.choice((30, 300))
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * self.pauses.randrange(1, most))
            function()
        except Stop:
            self.caught += 1
        finally:
            self.armed = False


def anywhere(team, op, wait):
    """An interrupted request can be waited for again, and its result is right."""
    signals = Signals(team.rank)
    for i in range(100):
        results = [zeros(4) for _ in range(3)]
        requests = [team.iallreduce(ones(), recv, op, timeout=10) for recv in results]
        while any(request._active for request in requests):
            signals.run(lambda: wait(requests))
        if op == collnet.SUM:
            expect(results, [array.array("i", [team.size] * 4)] * 3, f"results of turn {i}")
            expect([signals.caught], [signals.raised], "exceptions")
        for request in requests:
            expect([request._lock.locked()], [False], "a lock that is held")
            try:
                request.wait()
            except Stop:
                expect([op == collnet.SUM], [False], "an exception of the operation")


def memory(context, team):
    """Signals come while memory is allocated and the collector finds it unused."""
    signals = Signals(team.rank)

    def alloc():
        for _ in range(20):
            context.alloc(64)

    for _ in range(300):
        signals.run(alloc)
    expect([signals.caught], [signals.raised], "exceptions of alloc()")
    context.alloc(0)
    expect([len(context._memory.used) < 3], [True], "allocations that are left")


def destroyed(context, team):
    """Signals come while a team is destroyed. The next call goes on with that."""
    signals = Signals(team.rank)
    for turn in range(200):
        own = context.team(f"destroyed-{team.rank}-{turn}", 0, 1)
        own.ibarrier()
        signals.run(own.destroy)
        own.destroy()
        expect([own._unleft], [[]], "a team that destroy() has not left")
    expect([signals.caught], [signals.raised], "exceptions of destroy()")


def each(requests):
    for request in requests:
        if request._active:
            request.wait()


def looks(requests):
    for request in requests:
        request.test()


def any_of(requests):
    while collnet.waitany(requests) is not None:
        pass


with collnet.Context() as context, context.team() as team:
    at_a_function(context, team)
    if EXACT:
        memory(context, team)
        destroyed(context, team)
        for wait in (each, looks, any_of):
            anywhere(team, collnet.SUM, wait)
        anywhere(team, collnet.UserOp(add), each)
    team.barrier()
    print(f"right: rank {team.rank}", flush=True)
