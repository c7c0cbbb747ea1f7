# SPDX-License-Identifier: BSD-2-Clause
"""
Outstanding operations.

A request holds what the library uses (buffers, callbacks, arrays) until it completes, and its
context holds the request: a request that the program has dropped, or whose wait a signal has
interrupted, keeps its memory.
"""
import ctypes
import itertools
import math
import operator
import threading
import time
from ctypes import byref, c_size_t, c_void_p

from ._library import (CollnetError, Handle, Status, check_caller, error, library, seconds,
                       sequence)

# Milliseconds after which a wait lets Python look at signals.
SLICE = 200

# With more outstanding requests of a context, a new one first collects those that have completed
# and that no thread waits for.
MANY = 16

_TRY = operator.methodcaller("acquire", False)
_RELEASE = operator.methodcaller("release")


def _end(timeout):
    """When a wait ends; None: never."""
    value = math.inf if timeout is None else seconds(timeout)
    return None if value == math.inf else time.monotonic() + max(value, 0)


def _left(end):
    """The milliseconds of a wait's next slice."""
    return SLICE if end is None else int(min((end - time.monotonic()) * 1000, SLICE))


def _call(report, function, *arguments):
    """
    Calls a function of the library, and then report(code). What the library has done is noted in
    that, also if the handler of a signal that came meanwhile raises an exception: it runs when
    extend() returns, with the code in the list. What a second signal interrupts is done again.
    """
    codes = []
    try:
        codes.extend(map(function, *[(argument,) for argument in arguments]))
    finally:
        try:
            for code in codes:
                report(code)
        except BaseException:
            for code in codes:
                report(code)
            raise
    return codes[0]


def _holding(locks, seconds, function):
    """
    Calls function(got) with those of the locks that are free, or become so within so many seconds.
    No handler of a signal runs in extend(), between a lock's acquisition and its note in `got`, or
    before the release. (`with` has a gap in CPython 3.14.)
    """
    got, released = [], []
    acquire = operator.methodcaller("acquire", True, seconds) if seconds > 0 else _TRY
    release = map(_RELEASE, itertools.compress(locks, got))
    try:
        got.extend(map(acquire, locks))
        return function(got)
    finally:
        try:  # at once, for CPython 3.9 looks at signals before all other instructions
            released.extend(release)
        finally:
            released.extend(release)


def _collect_completed(context):
    """
    Collects operations that have completed, for later waits: the program may have dropped their
    requests. Returns whether there were any.
    """
    return any([request._look() for request in list(context.requests)])


class Request(Handle):
    """An outstanding operation. Once it has completed, tests and waits give the same result."""

    entered = False  # a call of the library uses its team or endpoint
    posting = False  # _enter() is not over

    def __init__(self, context, held, callback=None, persistent=False, owner=None):
        self._context = context
        self._held = held
        self._callback = callback
        self._persistent = persistent
        self._owner = owner  # its team or endpoint
        self._pointer = c_void_p()
        self._active = not persistent
        self._failure = None
        self._traceback = None  # of the failure in a reduction's function
        self._told = persistent  # the program knows the result
        self._lock = threading.Lock()

    def _post(self, function, *arguments):
        """Calls the function of the team or endpoint that makes the request."""
        check_caller()
        context = self._context
        if len(context.requests) >= context.many:
            _collect_completed(context)
            context.many = max(MANY, 2 * len(context.requests))

        def post():
            code = function(self._owner._open(), *arguments, byref(self._pointer))
            if code == Status.ELIMIT and _collect_completed(context):
                code = function(self._owner._open(), *arguments, byref(self._pointer))
            if code != Status.OK:
                raise error(code, context.pointer)

        self._enter(post)
        return self

    def _enter(self, call):
        """
        Calls the library with the team or endpoint. What other threads destroy or close meanwhile
        ends after that.
        """
        try:
            self.entered = self.posting = True
            self._context.requests.add(self)
            call()
        finally:
            try:
                self.entered = False
                self._owner.leave()
            finally:
                if not self._pointer:  # else it was made, also if a signal has interrupted this
                    self._release()
                self.posting = False

    def _release(self):
        for buffer in self._held:
            buffer.release()
        self._held = ()
        if self._callback is not None:
            self._callback.end()
        self._context.requests.discard(self)

    def _collected(self, code):
        """
        The library has reported a state: if the operation has completed, it has freed a request that
        is not persistent.
        """
        if code == Status.INPROGRESS:
            return
        self._failure = None if code == Status.OK else error(code, self._context.pointer)
        if self._callback is not None:
            self._failure = self._failure or self._callback.failure
            self._traceback = self._failure and self._failure.__traceback__
        if not self._persistent:
            self._pointer = None
            self._release()
        self._active = False

    def _result(self):
        self._told = True
        if self._failure is not None:
            raise self._failure.with_traceback(self._traceback)
        return True

    def _try(self, seconds, function, *arguments):
        """
        Collects the result if the operation is outstanding. Returns False if another thread has done
        the same for so many seconds.
        """
        def collect(got):
            if got[0] and self._active and not self.posting:
                _call(self._collected, function, self._pointer, *arguments)
            return got[0]

        return _holding((self._lock,), seconds, collect)

    def _look(self):
        """Collects the result if the operation has completed, and no thread waits for it."""
        if not self._active:
            return False
        self._try(0, library.raw.collnet_test)
        return not self._active

    def test(self):
        """Returns whether the operation has completed; raises its exception."""
        check_caller()
        self._look()
        return not self._active and self._result()

    def wait(self, timeout=None):
        """
        Waits until the operation completes, for at most `timeout` seconds, and returns whether it
        has; raises its exception. The operation's own deadline counts in any case.
        """
        check_caller()
        end = _end(timeout)
        while self._active:
            left = _left(end)
            if left <= 0:
                return self.test()
            self._try(left / 1000, library.raw.collnet_wait, left)
        return self._result()

    def start(self):
        """Starts a persistent operation."""
        if not self._persistent:
            raise CollnetError(Status.EINVAL, "the request is not persistent")
        self._owner._open()
        if self._pointer is None:
            raise CollnetError(Status.EINVAL, "the request has been freed")
        if self._callback is not None and not self._active:
            self._callback.start()

        def started(code):
            if code == Status.OK:
                self._failure = None
                self._told = False
                self._active = True

        def start():
            self._owner._open()
            code = _call(started, library.raw.collnet_start, self._pointer)
            if code == Status.ELIMIT and _collect_completed(self._context):
                code = _call(started, library.raw.collnet_start, self._pointer)
            if code != Status.OK:
                raise error(code, self._context.pointer)

        self._enter(start)
        return self

    def free(self):
        """Frees a persistent request, which must be inactive."""
        check_caller()
        if self._pointer is None:
            return

        def freed(code):
            if code == Status.OK:
                self._pointer = None
                self._release()

        code = _call(freed, library.raw.collnet_request_free, self._pointer)
        if code != Status.OK:
            raise error(code, self._context.pointer)

    def _abandon(self, seconds=5 * SLICE / 1000):
        """
        Of a team or endpoint that is gone: collects the result, for a later wait. Returns whether no
        thread waits in the library any more, after so long.
        """
        if not self._try(seconds, library.raw.collnet_test):
            return False
        if self._active or self.posting:  # a call uses the team or endpoint
            return False
        if self._persistent:
            self.free()
        return True


def _listed(requests):
    """A list of requests, some of which may be None."""
    requests = sequence("requests", requests, "requests")
    for request in requests:
        if request is not None and not isinstance(request, Request):
            raise TypeError(f"requests: {request!r} is not a request")
    return requests


def waitall(requests, timeout=None):
    """
    Waits until all of the requests have completed, for at most `timeout` seconds, and returns
    whether they have; raises the first exception of the list. None is ignored.
    """
    requests = [request for request in _listed(requests) if request is not None]
    end = _end(timeout)
    failure = None
    for request in requests:
        try:
            if not request.wait(None if end is None else max(0, end - time.monotonic())):
                return False
        except Exception as why:
            if why is not request._failure:  # of a signal
                raise
            failure = failure or why
    if failure is not None:
        raise failure
    return True


def waitany(requests, timeout=None):
    """
    Waits until one of the requests has completed, for at most `timeout` seconds (0: looks), and
    returns its index; raises its exception. Returns None if none has completed, or none is left.
    Requests whose result the program knows from another call are ignored, as is None.
    """
    check_caller()
    requests = _listed(requests)
    end = _end(timeout)
    while True:
        for i, request in enumerate(requests):
            if request is not None and not request._active and not request._told:
                request._result()
                return i
        active = [request for request in requests if request is not None and request._active]
        if not active:
            return None
        left = _left(end)
        if not _collect_any(active, left) and left <= 0:
            return None


def _collect_any(requests, left):
    """
    Waits so many milliseconds for one of these requests and collects it; returns whether another
    look can find more. Locks keep other threads from collecting them meanwhile; what another thread
    waits for is left to that one.
    """
    locks = [request._lock for request in requests]

    def collect(got):
        active = [request for request in itertools.compress(requests, got) if request._active]
        if active:
            return _collect_one(active, left)
        return True if any(got) else None

    found = _holding(locks, 0, collect)
    if found is None:  # no lock is free
        found = _holding(locks[:1], max(left, 0) / 1000, any)
    return found


def _collect_one(requests, left):
    array = (c_void_p * len(requests))(*[request._pointer.value for request in requests])
    index = c_size_t(-1)  # if the call itself fails

    def collected(code):
        if code != Status.INPROGRESS and index.value < len(requests):
            requests[index.value]._collected(code)

    arguments = [len(requests), array, byref(index)]
    if left <= 0:
        code = _call(collected, library.raw.collnet_testany, *arguments)
    else:
        code = _call(collected, library.raw.collnet_waitany, *arguments, left)
    if index.value > len(requests) and code != Status.INPROGRESS:
        raise error(code, requests[0]._context.pointer)
    return code != Status.INPROGRESS


class Owner(Handle):
    """A team or endpoint: `_pointer` until it is closed, and in `_unleft` until the library has."""

    def leave(self):
        """What remains of closing it, unless a call of the library uses it."""
        if self._pointer is None and not any(
                call.entered for call in list(self._context.requests) if call._owner is self):
            try:  # no signal's handler runs between pop() and the end
                [].extend(map(self._end, iter(self._unleft.pop, None)))
            except IndexError:  # there is no more, or another thread was faster
                pass


class Using:
    """A call of the library that uses the context: close() leaves its end to a later one."""

    entered = False
    _owner = None

    def __init__(self, context):
        self._context = context
        self._ended = threading.Event()

    def __enter__(self):
        self._context.requests.add(self)
        try:
            return self._context._open()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self._context.requests.discard(self)
        self._ended.set()

    def _look(self):
        pass

    def _abandon(self, seconds=0):
        return self._ended.wait(seconds)


class _Making:
    """
    A call that makes a team. It has no slices in which Python could look at signals, and waits for
    as long as other ranks do not come. Until it ends, it keeps the context, as a request does, and
    the team that it divides.
    """

    def __init__(self, context, owner, make):
        self._context = context
        self._owner = owner  # the team that is divided; None: it is made of nothing
        self._make = make  # the class Team
        self._teams = []  # the new team, until it is taken or left
        self._failure = None
        self._interrupted = False
        self._turns = [self]  # who takes it decides whether the library is called
        self.entered = owner is not None
        # A join() of the thread that a signal interrupts would make is_alive() false.
        self._ended = threading.Event()

    def run(self, *call):
        try:
            self._context.requests.add(self)
            if self._take_turn():
                self._call(*call)
        finally:
            self.entered = False
            if self._owner is not None:
                self._owner.leave()
            self._context.requests.discard(self)
            self._ended.set()

    def _take_turn(self):
        try:
            return self._turns.pop()
        except IndexError:
            return None

    def _call(self, function, *arguments):
        out = c_void_p()
        try:
            pointer = self._context._open()
            place = pointer if self._owner is None else self._owner._open()
            code = function(place, *arguments, byref(out))
            if code != Status.OK:
                raise error(code, pointer)
            self._teams.append(self._make(self._context, out) if out else None)
            self._context._open()  # nobody has closed it meanwhile
        except BaseException as why:
            self._failure = why
        if self._failure is not None or self._interrupted:
            self._leave()

    def _leave(self):
        try:
            team = self._teams.pop()
        except IndexError:  # it is not there yet, or was left
            return
        if team is not None:
            team.destroy()

    def _look(self):
        pass

    def _abandon(self, seconds=0):
        return self._ended.wait(seconds)

    def result(self):
        """The team; None for a rank that is in none."""
        if self._failure is not None:
            raise self._failure
        return self._teams.pop()

    def run_in_thread(self, *call):
        """
        The same by a thread. If a signal's handler raises an exception, the thread leaves the team
        when it is there.
        """
        self._context.requests.add(self)
        try:
            threading.Thread(target=self.run, args=call, daemon=True).start()
            self._ended.wait()
        except BaseException:
            self._interrupted = True
            if self._take_turn():  # without a call: the thread may never run
                self.run()
            self._leave()
            raise


def make_team(make, context, team, *call):
    """
    Calls a function that makes a team, of `team` unless that is None. A signal interrupts it: its
    handler runs in the main thread, which only waits.
    """
    check_caller()
    making = _Making(context, team, make)
    if threading.current_thread() is threading.main_thread():
        making.run_in_thread(*call)
    else:
        making.run(*call)
    return making.result()


class Receive(Request):
    """A receive: `bytes` and `source` are those of the message when it has completed."""

    def __init__(self, context, held, owner, address):
        super().__init__(context, held, owner=owner)
        self._address = address
        self._length = ctypes.c_size_t(held[0].bytes)

    @property
    def bytes(self):
        return self._length.value

    @property
    def source(self):
        return self._address.node.decode(), self._address.endpoint
