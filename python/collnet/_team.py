# SPDX-License-Identifier: BSD-2-Clause
"""
Teams and their collective operations.

The methods take the arguments of the C functions in their order. A size is that of the buffer, and
counts and displacements are in elements of it.
"""
import ctypes
import functools
from ctypes import byref, c_int, c_int32, c_uint32

from ._buffer import Buffer, UserCall, UserOp
from ._library import (CollnetError, Op, Status, check_caller, collnet_coll_options,
                       frames, integer, integers, library, milliseconds, text, whole)
from ._request import Owner, Request, make_team


class _InPlace:
    def __repr__(self):
        return "IN_PLACE"


IN_PLACE = _InPlace()


def _blocking(start):
    """The blocking version of an operation."""
    name = start.__name__[1:]

    @functools.wraps(start)
    def run(self, *arguments, **options):
        if options.get("persistent"):
            raise TypeError(f"persistent operations are prepared by i{name}()")
        start(self, *arguments, **options).wait()

    run.__name__ = name
    run.__qualname__ = f"Team.{name}"
    return run


class Team(Owner):
    """
    Ranks that call collective operations together. Context.team() makes one.

    All operations take the options timeout (seconds; infinity: no deadline), algorithm and window
    (frames), and the non-blocking ones persistent (True: the request is to be started).
    """

    _end = staticmethod(library.collnet_team_destroy)

    def __init__(self, context, pointer):
        self._context = context
        self._pointer = pointer
        self._unleft = [pointer]
        self.rank = library.collnet_team_rank(pointer)
        self.size = library.collnet_team_size(pointer)
        self.nodes = library.collnet_team_nodes(pointer)
        self._names = [library.collnet_team_node(pointer, r).decode() for r in range(self.size)]
        context.children.add(self)

    def _open(self):
        check_caller()
        if self._pointer is None:
            raise CollnetError(Status.EINVAL, "this rank has left the team")
        return self._pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """
        Leaves the team. Outstanding requests end with ERANK. While another thread makes a team of
        it, that thread leaves it at the end of its call.
        """
        check_caller()
        if self._unleft:
            self._pointer = None
            self.leave()
            self._context.children.discard(self)
            for request in list(self._context.requests):
                if request._owner is self:
                    request._abandon()

    close = destroy

    def node(self, rank):
        """The name of a rank's node."""
        return self._names[self._there("rank", rank)]

    # ---- other teams ------------------------------------------------------------------------

    def _derive(self, *call):
        return make_team(Team, self._context, self, *call)

    def split(self, color, key=0):
        """The team of the ranks with the same color; None for a color less than 0."""
        return self._derive(library.collnet_team_split, integer("color", c_int32, color),
                            integer("key", c_int32, key))

    def dup(self):
        """Another team of the same ranks."""
        return self._derive(library.collnet_team_dup)

    def from_ranks(self, ranks):
        """The team of these ranks of this team, which alone call it."""
        ranks = integers("ranks", c_uint32, ranks)
        return self._derive(library.collnet_team_from_ranks, len(ranks), ranks)

    # ---- what the operations have in common --------------------------------------------------

    def _buffers(self, send, recv, own=None):
        """Both buffers; in place, `send` is the buffer `recv`, or the block of it at `own`."""
        if send is IN_PLACE:
            recv = Buffer("recv", recv, True)
            return recv, recv
        return Buffer("send", send), Buffer("recv", recv, True)

    def _there(self, name, rank):
        rank = whole(name, rank)
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: there is no rank {rank} in a team of {self.size}")
        return rank

    def _root(self, root):
        return self._there("root", root) == self.rank

    def _start(self, function, held, *arguments, call=None, timeout=None, algorithm=None,
               window=None, persistent=False, **unknown):
        if unknown:
            name = function.__name__[len("collnet_i"):]
            raise TypeError(f"{name}() has no argument {next(iter(unknown))!r}")
        options = None  # the defaults
        if persistent or (timeout, algorithm, window, call) != (None, None, None, None):
            options = collnet_coll_options()
            library.collnet_coll_options_init(byref(options))
            options.timeout_ms = milliseconds(timeout)
            if algorithm is not None:
                options.algorithm = text("algorithm", algorithm)
            options.persistent = 1 if persistent else 0
            if window is not None:
                options.window = frames(window)
            if call is not None:
                options.user_op = ctypes.pointer(call.structure)
        request = Request(self._context, held, call, persistent, self)
        return request._post(function, *arguments, options)

    # ---- blocks of one size ------------------------------------------------------------------

    def ialltoall(self, send, recv, **options):
        """Block i of `send` goes to rank i, block j of `recv` comes from rank j."""
        send, recv = self._buffers(send, recv)
        block = recv.block(self.size)
        send.block(self.size)
        send.has(recv.bytes)
        return self._start(library.collnet_ialltoall, (send, recv), send.address, recv.address,
                           block, **options)

    def iallgather(self, send, recv, **options):
        """`send` of rank j arrives in block j of `recv` on every rank."""
        send, recv = self._buffers(send, recv)
        block = recv.block(self.size)
        if send is recv:
            address = recv.address + self.rank * block
        else:
            send.has(block)
            address = send.address
        return self._start(library.collnet_iallgather, (send, recv), address, recv.address, block,
                           **options)

    def ibcast(self, buffer, root=0, **options):
        """The root's `buffer` arrives in `buffer` of every other rank."""
        buffer = Buffer("buffer", buffer, not self._root(root))
        return self._start(library.collnet_ibcast, (buffer,), buffer.address, buffer.bytes, root,
                           **options)

    def iscatter(self, send, recv, root=0, **options):
        """Block i of the root's `send` arrives in `recv` of rank i. In place: the root's `recv`."""
        if not self._root(root):
            recv = Buffer("recv", recv, True)
            return self._start(library.collnet_iscatter, (recv,), None, recv.address, recv.bytes,
                               root, **options)
        send = Buffer("send", send, recv is IN_PLACE)
        block = send.block(self.size)
        if recv is IN_PLACE:
            recv, address = send, send.address + self.rank * block
        else:
            recv = Buffer("recv", recv, True)
            recv.has(block)
            address = recv.address
        return self._start(library.collnet_iscatter, (send, recv), send.address, address, block,
                           root, **options)

    def igather(self, send, recv, root=0, **options):
        """`send` of rank i arrives in block i of the root's `recv`."""
        if not self._root(root):
            send = Buffer("send", send)
            return self._start(library.collnet_igather, (send,), send.address, None, send.bytes,
                               root, **options)
        send, recv = self._buffers(send, recv)
        block = recv.block(self.size)
        if send is recv:
            address = recv.address + self.rank * block
        else:
            send.has(block)
            address = send.address
        return self._start(library.collnet_igather, (send, recv), address, recv.address, block,
                           root, **options)

    # ---- blocks of any size ------------------------------------------------------------------

    def ialltoallv(self, send, send_counts, send_displs, recv, recv_counts, recv_displs,
                   **options):
        """The blocks of `send` go to the ranks, those of `recv` come from them."""
        send, recv = self._buffers(send, recv)
        return self._start(
            library.collnet_ialltoallv, (send, recv),
            send.address, *send.blocks(self.size, send_counts, send_displs),
            recv.address, *recv.blocks(self.size, recv_counts, recv_displs), **options)

    def _one_block(self, one, vector, counts, displs):
        """Address and bytes of the buffer of one block: in place, this rank's of the vector."""
        if one is not vector:
            return one.address, one.bytes
        at = sum(counts[:self.rank]) if displs is None else displs[self.rank]
        return vector.address + at, counts[self.rank]

    def iallgatherv(self, send, recv, counts, displs=None, **options):
        """`send` of rank j arrives in block j of `recv` on every rank."""
        send, recv = self._buffers(send, recv)
        counts, displs = recv.blocks(self.size, counts, displs)
        address, length = self._one_block(send, recv, counts, displs)
        return self._start(library.collnet_iallgatherv, (send, recv), address, length,
                           recv.address, counts, displs, **options)

    def igatherv(self, send, recv, counts=None, displs=None, root=0, **options):
        """`send` of rank i arrives in block i of the root's `recv`."""
        if not self._root(root):
            send = Buffer("send", send)
            return self._start(library.collnet_igatherv, (send,), send.address, send.bytes, None,
                               None, None, root, **options)
        send, recv = self._buffers(send, recv)
        counts, displs = recv.blocks(self.size, counts, displs)
        address, length = self._one_block(send, recv, counts, displs)
        return self._start(library.collnet_igatherv, (send, recv), address, length, recv.address,
                           counts, displs, root, **options)

    def iscatterv(self, send, counts, displs, recv, root=0, **options):
        """Block i of the root's `send` arrives in `recv` of rank i. In place: the root's `recv`."""
        if not self._root(root):
            recv = Buffer("recv", recv, True)
            return self._start(library.collnet_iscatterv, (recv,), None, None, None, recv.address,
                               recv.bytes, root, **options)
        send = Buffer("send", send, recv is IN_PLACE)
        counts, displs = send.blocks(self.size, counts, displs)
        recv = send if recv is IN_PLACE else Buffer("recv", recv, True)
        address, length = self._one_block(recv, send, counts, displs)
        return self._start(library.collnet_iscatterv, (send, recv), send.address, counts, displs,
                           address, length, root, **options)

    # ---- reductions --------------------------------------------------------------------------

    @staticmethod
    def _operation(op):
        if isinstance(op, UserOp):
            return op
        return integer("op", c_int, op, "an operation such as SUM, or a UserOp")

    @staticmethod
    def _same_type(send, recv, op, type):
        """The elements of `send`, and their type, which must be that of `recv`."""
        count, kind = send.elements(op, type)
        if kind != recv.elements(op, type)[1]:
            raise TypeError(
                f"the formats of send and recv differ: {send.format!r}, {recv.format!r}")
        return count, kind

    def _reduce(self, function, send, recv, op, type, tail, options, blocks=1):
        """`send` has as many blocks as `recv` is long; a `recv` of None is ignored."""
        op = self._operation(op)
        send, recv = (Buffer("send", send), None) if recv is None else self._buffers(send, recv)
        count, kind = send.elements(op, type)
        if recv is None:
            address, held = None, (send,)
        else:
            self._same_type(send, recv, op, type)
            send.has(recv.bytes * blocks)
            if isinstance(op, UserOp) and op.element is None and send.itemsize != recv.itemsize:
                raise TypeError(f"the items of send have {send.itemsize} bytes, those of recv "
                                f"{recv.itemsize}")
            address, held = recv.address, (send, recv)
        call = UserCall(op, send) if isinstance(op, UserOp) else None
        return self._start(function, held, send.address, address, count // blocks, kind,
                           Op.USER if call is not None else op, *tail, call=call, **options)

    def iallreduce(self, send, recv, op=Op.SUM, type=None, **options):
        """`recv` is the combination of all ranks' `send`, on every rank."""
        return self._reduce(library.collnet_iallreduce, send, recv, op, type, (), options)

    def ireduce(self, send, recv, op=Op.SUM, root=0, type=None, **options):
        """The same to the root's `recv`, which is ignored on other ranks."""
        if not self._root(root):
            recv = None
        return self._reduce(library.collnet_ireduce, send, recv, op, type, (root,), options)

    def ireduce_scatter(self, send, recv, op=Op.SUM, type=None, **options):
        """`recv` of rank r is the combination of all ranks' blocks r of `send`."""
        if send is IN_PLACE:
            raise TypeError("reduce_scatter has no version in place")
        return self._reduce(library.collnet_ireduce_scatter, send, recv, op, type, (), options,
                            self.size)

    def ireduce_scatterv(self, send, recv, counts, op=Op.SUM, type=None, **options):
        """The same with blocks of counts[r] elements for rank r."""
        op = self._operation(op)
        send, recv = Buffer("send", send), Buffer("recv", recv, True)
        count, kind = self._same_type(send, recv, op, type)
        lengths, _ = send.blocks(self.size, counts, None)
        send.has(sum(lengths))
        recv.has(lengths[self.rank])
        element = send.bytes // max(count, 1) or 1
        if any(length % element != 0 for length in lengths):
            raise ValueError(f"send has blocks that do not consist of elements of {element} bytes")
        lengths = (ctypes.c_size_t * self.size)(*[length // element for length in lengths])
        call = UserCall(op, send) if isinstance(op, UserOp) else None
        return self._start(library.collnet_ireduce_scatterv, (send, recv), send.address,
                           recv.address, lengths, kind, Op.USER if call is not None else op,
                           call=call, **options)

    def iscan(self, send, recv, op=Op.SUM, type=None, **options):
        """`recv` of rank r is the combination of `send` of ranks 0 .. r."""
        return self._reduce(library.collnet_iscan, send, recv, op, type, (), options)

    def iexscan(self, send, recv, op=Op.SUM, type=None, **options):
        """`recv` of rank r is the combination of `send` of ranks 0 .. r - 1."""
        return self._reduce(library.collnet_iexscan, send, recv, op, type, (), options)

    def ibarrier(self, **options):
        """Completes after every rank of the team has called it."""
        return self._start(library.collnet_ibarrier, (), **options)

    alltoall = _blocking(ialltoall)
    allgather = _blocking(iallgather)
    bcast = _blocking(ibcast)
    scatter = _blocking(iscatter)
    gather = _blocking(igather)
    alltoallv = _blocking(ialltoallv)
    allgatherv = _blocking(iallgatherv)
    gatherv = _blocking(igatherv)
    scatterv = _blocking(iscatterv)
    allreduce = _blocking(iallreduce)
    reduce = _blocking(ireduce)
    reduce_scatter = _blocking(ireduce_scatter)
    reduce_scatterv = _blocking(ireduce_scatterv)
    scan = _blocking(iscan)
    exscan = _blocking(iexscan)
    barrier = _blocking(ibarrier)
