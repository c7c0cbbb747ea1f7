# SPDX-License-Identifier: BSD-2-Clause
"""
Contexts, their memory, and endpoints.

Memory of alloc() belongs to the objects that use it. The garbage collector may find the last one of
them gone anywhere, also in a callback of the library; it only notes the address, and the memory is
freed in the next alloc() or close(). A context whose memory is in use, or in which a thread waits,
is closed later.
"""
import atexit
import collections
import ctypes
import weakref
from ctypes import byref, c_size_t, c_uint16, c_uint32, c_void_p, py_object, pythonapi

from . import _library as api
from ._buffer import Buffer
from ._library import (NAME_MAX, Handle, LogLevel, Status, check_caller, error, library,
                       milliseconds, peer_milliseconds, thread)
from ._request import MANY, Owner, Receive, Request, Using, make_team
from ._team import Team

# Closed contexts that are in use: their states.
_lingering = []


# In direct mode, a thread of the library writes to the buffers of a context that was not closed,
# also if the program has dropped it, and after the interpreter has ended.
_keep, _drop = pythonapi["Py_IncRef"], pythonapi["Py_DecRef"]
for _function in (_keep, _drop):
    _function.argtypes = [py_object]
    _function.restype = None


class _Allocation(weakref.ref):
    """Memory of alloc(), which is unused when its object is collected."""
    address = None


class _Memory:
    """The allocations of a context."""

    def __init__(self, pointer, outstanding):
        self.pointer = pointer
        self.outstanding = outstanding  # the context's requests
        _keep(self)
        self.used = {}  # by their addresses, and with those in `unused`
        self.requests = []  # of a closed context: in which a thread may wait
        self.unused = collections.deque()

    def alloc(self, size):
        self.reap()
        addresses = []
        try:
            # No signal's handler runs before extend() returns.
            addresses.extend(map(library.raw.collnet_alloc, (self.pointer,), (max(size, 1),)))
            address, = addresses
            if not address:
                raise error(Status.ENOMEM, self.pointer)
            memory = (ctypes.c_ubyte * size).from_address(address)
            allocation = _Allocation(memory, self.unused.append)
            allocation.address = address
            self.used[address] = allocation
            return memoryview(memory).cast("B")
        except BaseException:
            for address in addresses:
                if address and address not in self.used:
                    library.collnet_free(self.pointer, address)
            raise

    def reap(self):
        while self.unused:
            allocation = self.unused[0]
            address = allocation.address
            if self.used.get(address) is allocation:
                del self.unused[0], self.used[address]
                library.collnet_free(self.pointer, address)
            else:  # of an alloc() that was interrupted, which has freed it
                del self.unused[0]

    def close(self):
        """Closes the context unless it is in use; returns whether it was closed."""
        self.reap()
        self.requests = [request for request in self.requests if not request._abandon(0)]
        if self.used or self.requests:
            return False
        pointer, self.pointer = self.pointer, None
        if pointer is not None:  # it was not interrupted at the end
            library.collnet_close(pointer)
            _drop(self)
        return True


def _close_lingering():
    _lingering[:] = [memory for memory in _lingering if not memory.close()]


class Context(Handle):
    """
    A context: a program's handle on the network.

    The options are those of struct collnet_options; those that are None come from the environment.
    timeout, the deadline of calls that specify none, and peer_timeout are in seconds.
    """

    def __init__(self, *, mode=None, socket=None, interface=None, link=None, node=None,
                 topology=None, cluster=None, ethertype=None, spin=None, timeout=None,
                 encapsulation=None, peers=None, key=None, peer_timeout=None):
        check_caller()
        _close_lingering()
        options = api.collnet_options()
        library.collnet_options_init(byref(options))
        for name, value in (("mode", api.mode_of(mode)), ("cluster", cluster),
                            ("ethertype", ethertype), ("spin", spin)):
            if value is not None:
                setattr(options, name, value)
        for name, value in (("socket", socket), ("interface", interface), ("link", link),
                            ("node", node), ("topology", topology),
                            ("encapsulation", encapsulation), ("peers", peers), ("key", key)):
            if value is not None:
                setattr(options, name, api.text(name, value))
        if timeout is not None:
            options.timeout_ms = milliseconds(timeout)
        if peer_timeout is not None:
            options.peer_timeout_ms = peer_milliseconds(peer_timeout)
        out = c_void_p()
        code = library.collnet_open(byref(options), byref(out))
        if code != Status.OK:
            raise error(code)
        self._closed = False
        self.requests = set()  # outstanding
        self._memory = _Memory(out, self.requests)
        self.many = MANY  # of them, at which completed ones are collected
        self.children = set()  # teams and endpoints
        self.node_name = library.collnet_node_name(out).decode()

    @property
    def pointer(self):
        return self._memory.pointer if self._memory is not None else None

    def _open(self):
        check_caller()
        memory = self._memory  # before close() takes it
        if self._closed:
            raise api.CollnetError(Status.EINVAL, "the context is closed")
        return memory.pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves the teams, closes the endpoints, and frees the memory that is not in use."""
        check_caller()
        if self._memory is None:
            return
        self._closed = True  # before it looks for calls: what comes later is refused
        for child in list(self.children):
            child.close()
        self._memory.requests += [request for request in list(self.requests)
                                  if not request._abandon()]
        memory, self._memory = self._memory, None
        _lingering.append(memory)
        _close_lingering()

    def alloc(self, size):
        """
        Zeroed memory that is sent and received without a copy, as a writable memoryview of bytes.
        It is freed with the last object that uses it.
        """
        memory = self._memory
        with Using(self):
            size = api.whole("size", size)
            if size < 0:
                raise ValueError(f"size: {size} is not a number of bytes")
            api.integer("size", c_size_t, size)
            return memory.alloc(size)

    def team(self, job=None, rank=None, size=None, timeout=None, secret=None):
        """Joins a team, by default the launcher's, and waits until all ranks have joined."""
        self._open()
        options = api.collnet_team_options()
        library.collnet_team_options_init(byref(options))
        if job is not None:
            options.job = api.text("job", job)
        if rank is not None:
            options.rank = rank
        if size is not None:
            options.ranks = api.integer("size", c_uint32, size)
        options.timeout_ms = milliseconds(timeout)
        if secret is not None:
            options.secret = api.text("secret", secret)
        return make_team(Team, self, None, library.collnet_team_create, byref(options))

    def endpoint(self, number=0):
        """Opens an endpoint of this node; 0 selects a free number."""
        return Endpoint(self, number)

    def stats(self, reset_peak=False):
        """The counters of the node, as a dictionary."""
        out = api.collnet_stats(size=ctypes.sizeof(api.collnet_stats))
        with Using(self) as pointer:
            code = library.collnet_get_stats(pointer, byref(out), 1 if reset_peak else 0)
            if code != Status.OK:
                raise error(code, pointer)
        return api.values(out)

    def _list(self, function, structure):
        room = 64
        with Using(self) as pointer:
            while True:
                entries, count = (structure * room)(), c_size_t(room)
                code = function(pointer, entries, byref(count))
                if code != Status.OK:
                    raise error(code, pointer)
                if count.value <= room:
                    return [api.values(entry) for entry in entries[:count.value]]
                room = count.value

    def nodes(self):
        """The node table, as a list of dictionaries."""
        return self._list(library.collnet_get_nodes, api.collnet_node_info)

    def jobs(self):
        """The teams that have a rank on this node, as a list of dictionaries."""
        return self._list(library.collnet_get_jobs, api.collnet_job_info)


class Endpoint(Owner):
    """Sends and receives messages without a connection. Context.endpoint() opens one."""

    _end = staticmethod(library.collnet_endpoint_close)

    def __init__(self, context, number):
        self._context = context
        out = c_void_p()
        number = api.integer("number", c_uint16, number)
        with Using(context) as pointer:
            code = library.collnet_endpoint_open(pointer, number, byref(out))
            if code != Status.OK:
                raise error(code, pointer)
            self._pointer = out
            self._unleft = [out]
            self.number = library.collnet_endpoint_number(out)
            self.address = (context.node_name, self.number)
            context.children.add(self)
            if context._closed:  # meanwhile; this may have come too late for it
                self.close()
        self._open()

    def _open(self):
        check_caller()
        if self._pointer is None:
            raise api.CollnetError(Status.EINVAL, "the endpoint is closed")
        return self._pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the endpoint. Outstanding requests end with EINVAL."""
        check_caller()
        if self._unleft:
            self._pointer = None
            self.leave()
            self._context.children.discard(self)
            for request in list(self._context.requests):
                if request._owner is self:
                    request._abandon()

    def isend(self, to, data, timeout=None):
        """Sends one message to the endpoint `to`, a pair of node and number."""
        try:
            node, number = (to,) if isinstance(to, (str, bytes)) else to
        except (TypeError, ValueError):
            raise ValueError(f"to: {to!r} is not a pair of node and number") from None
        node = api.text("to", node)
        if len(node) > NAME_MAX:
            raise ValueError(f"to: a name of {len(node)} bytes; {NAME_MAX} are the most")
        address = api.collnet_address(node=node, endpoint=number)
        data = Buffer("data", data)
        return Request(self._context, (data,), owner=self)._post(
            library.collnet_isend, byref(address), data.address, data.bytes, milliseconds(timeout))

    def irecv(self, data, timeout=None):
        """Receives the next message into `data`: the request has its `bytes` and `source`."""
        request = Receive(self._context, (Buffer("data", data, True),), self, api.collnet_address())
        return request._post(
            library.collnet_irecv, byref(request._address), request._held[0].address,
            byref(request._length), milliseconds(timeout))

    def send(self, to, data, timeout=None):
        """Sends one message, and returns when `data` can be reused."""
        self.isend(to, data, timeout).wait()

    def recv(self, data, timeout=None):
        """Receives the next message into `data`; returns its length and its sender."""
        request = self.irecv(data, timeout)
        request.wait()
        return request.bytes, request.source


_log = None


def set_log(function):
    """
    Passes the lines of the library's log to function(level, line), which must not call this
    library; None: discards them.
    """
    global _log
    check_caller()
    if function is not None:
        api.check_callable("function", function)

    def line(_, level, message):
        outer, thread.inside = thread.inside, "the function of set_log()"
        try:
            function(LogLevel(level), message.decode(errors="replace"))
        finally:
            thread.inside = outer

    callback = api.LOG_FN() if function is None else api.LOG_FN(line)
    _keep(callback)  # another thread may be calling it, also when there is a later one
    library.collnet_set_log(callback, None)
    _log = callback


def _at_exit():
    """In direct mode, the library's threads run until the process ends, later than Python."""
    if _log is not None:
        library.collnet_set_log(api.LOG_FN(), None)


atexit.register(_at_exit)
