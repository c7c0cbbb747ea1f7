# SPDX-License-Identifier: BSD-2-Clause
"""Requests, signals, threads and closed contexts of the Python package, on every rank of a job."""
import array
import itertools
import math
import random
import threading
import time

import collnet
from collnet import _context, _request
from python_checks import alarm, await_file, expect, raises, remove, zeros


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
    raises(TypeError, "mode: 2.0 is not an integer", collnet.Context, mode=2.0)
    raises(ValueError, "has a NUL", collnet.Context, socket="a\0b")
    for call in (collnet.Context, team.barrier, team.ibarrier):
        raises(ValueError, "of at most 86400; ", call, timeout=86401)
    team.barrier(timeout=86400)  # what the library allows


def each_once(team):
    """Requests that other calls collect are reported by waitany() once, with their exceptions."""
    def divide(left, right, out):
        return 1 / (team.rank - team.rank)

    def reported(requests):
        got, failed = [], 0
        while True:
            try:
                index = collnet.waitany(requests, 20)
            except ZeroDivisionError:
                failed += 1
                continue
            if index is None:
                return sorted(got), failed
            got.append(index)

    many = 40  # more than there are before completed ones are collected
    requests = [team.ibarrier() for _ in range(many)]
    team.barrier()
    requests += [team.ibarrier() for _ in range(many // 2)]
    expect(reported(requests), (list(range(many + many // 2)), 0), "waitany() of barriers")
    expect([collnet.waitany(requests), collnet.waitall(requests)], [None, True], "and then")

    requests = [team.iallreduce(zeros(1), zeros(1), collnet.UserOp(divide)) for _ in range(many)]
    expect(reported(requests), ([], many), "waitany() of failures")
    raises(ZeroDivisionError, "", collnet.waitall, requests)

    # What the program knows from other calls is not reported; each start of a persistent one is.
    known = [team.ibarrier() for _ in range(2)]
    known[0].wait()
    while not known[1].test():
        pass
    again = team.ibarrier(persistent=True)
    expect([collnet.waitany(known + [again])], [None], "waitany() of none")
    for collects in (False, True):
        again.start()
        while collects and again._active:
            _request._collect_completed(team._context)
        expect([collnet.waitany(known + [again]) for _ in range(2)], [2, None], "a persistent one")
    again.free()

    # Collected by another thread while this one waits for the same requests and one that is late.
    with team._context.endpoint() as endpoint:
        late = endpoint.irecv(bytearray(1))
        requests = [late] + [team.ibarrier() for _ in range(30)]
        ends = threading.Event()

        def collect():
            while not ends.is_set():
                _request._collect_completed(team._context)

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        got = sorted(collnet.waitany(requests) for _ in range(30))
        endpoint.send(endpoint.address, b"x")
        got.append(collnet.waitany(requests))
        ends.set()
        thread.join()
        expect(got, list(range(1, 31)) + [0], "with another thread")


def interrupted(team):
    """A signal that comes before a wait collects the operation: its request is not another's."""
    other, copy = team.dup(), team.dup()
    if team.rank == 0:
        remove("interrupted")
    team.barrier()
    if team.rank == 0:
        alarm("interrupted")
        raises(InterruptedError, "by a signal", copy.barrier)
    else:
        await_file("interrupted")  # within the slice of the wait that the signal came in
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
            raises(collnet.CollnetError, "rank 0 on node h0 left the team",
                   lambda: other.team("late", 1, 2).barrier())
        team.barrier()
        await_none(30, lambda: other.requests, "of a join that has ended")
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
    # Interrupted while it waits.
    with collnet.Context() as other:
        alarm()
        raises(InterruptedError, "by a signal", other.team, f"noone{team.rank}", 0, 2, 1)
    none_lingers(30)


def interrupted_split(team):
    """A signal interrupts a rank that divides a team. When the others come, it leaves the new one."""
    other = team.dup()
    if team.rank == 0:
        alarm()
        raises(InterruptedError, "by a signal", team.split, 0)
        other.barrier()
    else:
        other.barrier()
        raises(collnet.CollnetError, "rank 0 on node h0 left the team",
               lambda: team.split(0).barrier())
    team.barrier()
    other.destroy()


def await_none(seconds, get, what):
    """What get() returns is empty within so many seconds."""
    end = time.monotonic() + seconds
    while get() and time.monotonic() < end:
        time.sleep(0.1)
        collnet.Context().close()
    expect(list(get()), [], what)


def none_lingers(seconds):
    """Closed contexts that were in use are gone within so many seconds."""
    await_none(seconds, lambda: _context._lingering, "closed contexts that are in use")


def closed(team):
    """A context is closed while a thread waits in it."""
    for i in range(10):
        context = collnet.Context()
        own = context.team(job=f"closed-{i}", rank=team.rank, size=team.size)
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


def closed_while_made(team):
    """A context is closed while a thread makes a team in it. The others come later, or never."""
    makes = {"team": lambda own, context: context.team("made", team.rank, team.size),
             "split": lambda own, _: own.split(0), "dup": lambda own, _: own.dup(),
             "from_ranks": lambda own, _: own.from_ranks(range(team.size))}
    for (name, make), come in itertools.product(makes.items(), (True, False)):
        context = collnet.Context(timeout=20 if come else 0.5)
        own = context.team(f"{name}-{come}", team.rank, team.size, 20)
        ends = []

        def run():
            try:
                ends.append(make(own, context))
            except collnet.CollnetError as error:
                ends.append(error)

        if team.rank == 0:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            time.sleep(0.1)
            began = time.monotonic()
            context.close()
            expect([time.monotonic() - began < 5], [True], f"a close() during {name}()")
        team.barrier()
        if team.rank == 0:
            thread.join(10)
            expect([type(end) for end in ends], [collnet.CollnetError], f"the end of {name}()")
            if come:
                expect([str(ends[0])], ["the context is closed"], f"the end of {name}()")
        elif come:
            raises(collnet.CollnetError, "left", lambda: make(own, context).barrier())
        team.barrier()
        context.close()
    none_lingers(30)


def left_while_made(team):
    """A team is destroyed while a thread divides it: this rank leaves it when that call ends."""
    own = team.dup()
    if team.rank == 0:
        made = []
        thread = threading.Thread(target=lambda: made.append(own.split(0)), daemon=True)
        thread.start()
        while not any(call.entered for call in list(team._context.requests)):
            time.sleep(0.01)
        time.sleep(0.1)
        own.destroy()
        raises(collnet.CollnetError, "left the team", own.barrier)
        team.barrier()
        thread.join(10)
        team.barrier()
    else:
        team.barrier()
        made = [own.split(0)]
        team.barrier()  # a barrier of `own` that fails can end the split of a rank that is in it
        raises(collnet.CollnetError, "rank 0 on node h0 left", own.barrier)
    made[0].barrier()
    made[0].destroy()


def run_until_closed(call):
    """A thread that calls until the team, endpoint or context is gone, and a list of what it met."""
    ends = []

    def run():
        try:
            while True:
                call()
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ends


def closed_while_called(team):
    """Teams, endpoints and contexts are closed at any time while a thread calls their methods."""
    chance = random.Random(team.rank)
    buffer = bytearray(64)

    def none(context):
        return context.team(f"alone-{team.rank}", 0, 1)

    cases = [(lambda _: team.dup(), lambda own, _: own.iallreduce(buffer, bytearray(64))),
             (none, lambda own, _: own.iallreduce(buffer, bytearray(64))),
             (none, lambda own, context: context.stats()),
             (none, lambda own, context: context.nodes()),
             (lambda context: context.endpoint(), lambda own, _: own.irecv(bytearray(8)))]
    for number, (make, call) in enumerate(cases):
        for _ in range(20):
            context = collnet.Context()
            own = make(context)
            thread, ends = run_until_closed(lambda: call(own, context))
            time.sleep(chance.random() * 0.003)
            own.close()
            context.close()
            thread.join(20)
            expect([type(end) for end in ends], [collnet.CollnetError], f"the end of case {number}")
    team.barrier()
    none_lingers(30)


def outstanding_while_made(team):
    """
    A context is closed while a thread divides a team of it, and an operation of that is outstanding:
    the team is left when the call ends, and the request is collected then.
    """
    context = collnet.Context(timeout=20)
    own = context.team("outstanding", team.rank, team.size, 20)
    if team.rank == 0:
        thread, ends = run_until_closed(lambda: own.split(0))
        while not any(call.entered for call in list(context.requests)):
            time.sleep(0.01)
        time.sleep(0.1)
        request = own.iallgather(zeros(1), zeros(team.size))
        context.close()
        expect([request._active], [True], "a request of a team that is being divided")
        team.barrier()
        thread.join(20)
        expect([str(end) for end in ends], ["the context is closed"], "the end of split()")
        none_lingers(30)
        raises(collnet.CollnetError, "", request.wait, 2)
    else:
        team.barrier()
        raises(collnet.CollnetError, "", lambda: own.split(0).barrier())
        context.close()
    team.barrier()


def many_persistent(team):
    """Completed persistent requests do not count as outstanding."""
    requests = [team.ibarrier(persistent=True) for _ in range(70)]
    for request in requests[:64]:
        request.start()
    requests[63].wait()
    requests[63].start()
    team.ibarrier().wait()
    collnet.waitall(requests[:64])
    for request in requests:
        request.free()


with collnet.Context() as context, context.team() as team:
    waits(team)
    each_once(team)
    interrupted(team)
    interrupted_join(team)
    interrupted_split(team)
    closed(team)
    closed_while_made(team)
    left_while_made(team)
    outstanding_while_made(team)
    closed_while_called(team)
    many_persistent(team)
    team.barrier()
    print(f"right: rank {team.rank}", flush=True)
