# SPDX-License-Identifier: BSD-2-Clause
"""
A backend of torch.distributed, for tensors on the CPU. Importing this module registers it:

    import collnet.torch
    torch.distributed.init_process_group("collnet")

A process group is a team. torch's store only passes on the team's name.

A work object waits in the thread that calls its wait(). If its future is requested, as by
DistributedDataParallel, a thread of the process group waits, so that gradients are reduced during the
backward pass. What torch calls from C++ it calls on the C++ part of a work object only;
the process group keeps the Python part until it has been waited for.
"""
import atexit
import collections
import math
import os
import queue
import threading
import weakref

import torch
import torch.distributed as dist

from ._context import Context
from ._library import OUTSTANDING_MAX, TIMEOUT_MAX, CollnetError, Op, Status, Type
from ._team import IN_PLACE

_OPS = {
    dist.ReduceOp.SUM: Op.SUM, dist.ReduceOp.AVG: Op.SUM, dist.ReduceOp.PRODUCT: Op.PROD,
    dist.ReduceOp.MIN: Op.MIN, dist.ReduceOp.MAX: Op.MAX, dist.ReduceOp.BAND: Op.BAND,
    dist.ReduceOp.BOR: Op.BOR, dist.ReduceOp.BXOR: Op.BXOR,
}

_context = None
_unused = collections.deque()  # teams of process groups that are gone


def _operation(op):
    for known, ours in _OPS.items():
        if op == known:
            return ours
    raise ValueError(f"collnet has no reduction {op}")


def _whole(tensor):
    """A contiguous tensor of the same elements: itself, or a copy, also of one that is only marked
    as conjugated or negated."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _memory(tensor):
    """The memory of a contiguous tensor, and the type of its elements if NumPy has none."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise ValueError("collnet transfers dense tensors on the CPU only, "
                         f"not {tensor.layout} on {tensor.device}")
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy(), Type.BFLOAT16
    return tensor.numpy(), None


def _only(tensors):
    """torch passes lists for the devices of a rank; a CPU is one."""
    if len(tensors) != 1:
        raise ValueError(f"collnet takes one tensor per rank, not {len(tensors)}")
    return tensors[0]


def _same_type(*dtypes):
    if len(set(dtypes)) > 1:
        raise ValueError(f"collnet does not convert between {dtypes[0]} and {dtypes[1]}")


def _each(tensors, ranks, dtype, elements=None):
    """A tensor for each rank, of one type, and of as many elements if they are specified."""
    if len(tensors) != ranks:
        raise ValueError(f"the list has {len(tensors)} tensors for {ranks} ranks")
    for tensor in tensors:
        _same_type(tensor.dtype, dtype)
        if elements is not None and tensor.numel() != elements:
            raise ValueError(f"a tensor of the list has {tensor.numel()} elements instead of "
                             f"{elements}")
    return tensors


def _flat(tensors):
    """One tensor of the elements of all."""
    return torch.cat([_whole(tensor).view(-1) for tensor in tensors])


def _back(whole, tensor):
    """What copies the elements of _whole(tensor) back to it; None: they are its own."""
    if whole.data_ptr() == tensor.data_ptr():
        return None
    return lambda: tensor.detach().copy_(whole)


def _spread(flat, tensors):
    """The reverse: copies the elements to the tensors."""
    at = 0
    for tensor in tensors:
        tensor.detach().copy_(flat[at:at + tensor.numel()].view(tensor.shape))
        at += tensor.numel()


class Work(dist._Work):
    """An operation; `finish`, if any, copies the result when it has completed."""

    def __init__(self, group, request, tensors, finish=None):
        super().__init__()
        self._request = request
        self._tensors = tensors
        self._finish = finish
        self._failure = None  # of `finish`
        self._works = group._works
        self._waiter = group._waiter
        self._lock = threading.Lock()
        self._future = None
        self._works[self] = None

    def _collect(self, seconds=None):
        if not self._request.wait(seconds):
            raise CollnetError(Status.ETIMEOUT, f"the work has not completed within {seconds} s")
        with self._lock:
            finish, self._finish = self._finish, None
            try:
                if finish is not None:
                    finish()
            except Exception as error:
                self._failure = error
            if self._failure is not None:
                raise self._failure

    def wait(self, timeout=None):
        """What has not completed within a timeout remains outstanding; 0: none, as torch's own."""
        seconds = timeout.total_seconds() if timeout is not None else 0
        try:
            self._collect(seconds if seconds > 0 else None)
        finally:
            if not self._request._active:
                self._works.pop(self, None)
        return True

    def is_completed(self):
        try:
            if not self._request.test():
                return False
            self._collect()
        except Exception:  # as torch's own: completed, without success
            pass
        return True

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        return self._request._failure or self._failure

    def result(self):
        return self._tensors

    def synchronize(self):
        self.wait()

    def get_future(self):
        with self._lock:
            if self._future is None:
                first = torch.futures.Future()
                # An exception of a callback becomes the error of the future, also in C++.
                self._future = first.then(self._value)
                self._waiter.add(self, first)
        return self._future

    def _value(self, _):
        self.wait()
        return self._tensors


class _Waiter:
    """
    A thread that waits for works whose futures are used, one after another. It also runs the futures'
    callbacks; what these wait for has a thread of its own.
    """

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self._thread = None
        self._ended = False

    def add(self, work, future):
        if self._ended or threading.current_thread() in _waiting:
            self._start(lambda: _Waiter._complete(work, future))
            return
        if self._thread is None:
            self._thread = self._start(lambda works=self._queue: _Waiter._run(works))
        self._queue.put((work, future))

    @staticmethod
    def _start(run):
        def waiting():
            _waiting.add(threading.current_thread())
            run()

        thread = threading.Thread(target=waiting, daemon=True, name="collnet")
        thread.start()
        return thread

    def end(self):
        self._ended = True  # a work that outlives the group can still be asked for its future
        self._queue.put(None)

    @staticmethod
    def _run(works):
        while True:
            item = works.get()
            if item is None:
                return
            _Waiter._complete(*item)
            del item

    @staticmethod
    def _complete(work, future):
        try:
            work._request.wait()
        except Exception:  # the future's callback raises it
            pass
        future.set_result(None)


_waiting = weakref.WeakSet()  # the threads of all waiters


class ProcessGroup(dist.ProcessGroup):
    """A team as a process group."""

    def __init__(self, team, timeout):
        super().__init__(team.rank, team.size)
        self._team = team
        self._timeout = timeout
        self._works = {}  # not waited for yet, in their order
        self._waiter = _Waiter()
        weakref.finalize(self, _gone, self._waiter, team).atexit = False

    def getBackendName(self):
        return "collnet"

    @property
    def _ready(self):
        """The team, when one more operation can be outstanding: waits for the oldest."""
        works = list(self._works)
        if len(works) >= OUTSTANDING_MAX:
            try:
                works[0]._request.wait()
            except Exception:  # its own wait() raises it
                pass
            self._works.pop(works[0], None)
        return self._team

    def _list(self, tensors, like):
        """A list of a tensor like this one for each rank."""
        return _each(_only(tensors), self._team.size, like.dtype, like.numel())

    def _work(self, request, tensors, finish=None):
        return Work(self, request, tensors, finish)

    def _in_place(self, start, tensor, *arguments, reduces=False, after=None):
        """An operation on one tensor; one that is not contiguous is copied there and back."""
        whole = _whole(tensor)
        memory, kind = _memory(whole)
        options = {"type": kind} if reduces else {}
        request = start(memory, *arguments, timeout=self._timeout, **options)
        return self._work(request, [tensor], self._end(whole, tensor, after))

    @staticmethod
    def _end(whole, tensor, after=None):
        """What follows an operation on _whole(tensor): after(whole), and the way back."""
        back = _back(whole, tensor)
        if after is None:
            return back

        def finish():
            after(whole)
            if back is not None:
                back()

        return finish

    def _average(self, op, tensor):
        """What follows a sum."""
        if op != dist.ReduceOp.AVG:
            return None
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise ValueError(f"collnet has no average of {tensor.dtype}")
        return lambda sums: sums.div_(self._team.size)

    def _between(self, start, send, recv, *arguments, tensors=None, finish=None, **options):
        """
        An operation on two tensors, of which `recv` is the output, unless there are others to which
        `finish` copies that.
        """
        _same_type(send.dtype, recv.dtype)
        whole = _whole(recv)
        request = start(_memory(_whole(send))[0], _memory(whole)[0], *arguments,
                        timeout=self._timeout, **options)
        if tensors is None:
            tensors, finish = [recv], self._end(whole, recv)
        return self._work(request, tensors, finish)

    def broadcast(self, tensors, opts):
        return self._in_place(self._ready.ibcast, _only(tensors), opts.rootRank)

    def allreduce(self, tensors, opts=None):
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        ours, tensor = _operation(op), _only(tensors)
        return self._in_place(
            lambda memory, **options: self._ready.iallreduce(IN_PLACE, memory, ours, **options),
            tensor, reduces=True, after=self._average(op, tensor))

    def reduce(self, tensors, opts):
        ours, tensor = _operation(opts.reduceOp), _only(tensors)
        average = self._average(opts.reduceOp, tensor)
        root = opts.rootRank == self._team.rank
        return self._in_place(
            lambda memory, **options: self._ready.ireduce(
                IN_PLACE if root else memory, memory, ours, opts.rootRank, **options),
            tensor, reduces=True, after=average if root else None)

    def allgather(self, outputs, inputs, opts=None):
        tensor = _only(inputs)
        outputs = self._list(outputs, tensor)
        flat = torch.empty(self._team.size * tensor.numel(), dtype=tensor.dtype)
        return self._between(self._ready.iallgather, tensor, flat, tensors=outputs,
                             finish=lambda: _spread(flat, outputs))

    def _allgather_base(self, output, tensor, opts=None):
        return self._between(self._ready.iallgather, tensor, output)

    def gather(self, outputs, inputs, opts):
        tensor = _only(inputs)
        if opts.rootRank != self._team.rank:
            request = self._ready.igather(_memory(_whole(tensor))[0], None, opts.rootRank,
                                         timeout=self._timeout)
            return self._work(request, [])
        outputs = self._list(outputs, tensor)
        flat = torch.empty(self._team.size * tensor.numel(), dtype=tensor.dtype)
        return self._between(self._ready.igather, tensor, flat, opts.rootRank, tensors=outputs,
                             finish=lambda: _spread(flat, outputs))

    def scatter(self, outputs, inputs, opts):
        output = _only(outputs)
        whole = _whole(output)
        send = (_memory(_flat(self._list(inputs, output)))[0]
                if opts.rootRank == self._team.rank else None)
        request = self._ready.iscatter(send, _memory(whole)[0], opts.rootRank,
                                      timeout=self._timeout)
        return self._work(request, [output], self._end(whole, output))

    def reduce_scatter(self, outputs, inputs, opts):
        output = _only(outputs)
        return self._reduce_scatter(output, _flat(self._list(inputs, output)), opts)

    def _reduce_scatter_base(self, output, tensor, opts):
        return self._reduce_scatter(output, tensor, opts)

    def _reduce_scatter(self, output, flat, opts):
        whole = _whole(output)
        after = self._average(opts.reduceOp, output)
        return self._between(self._ready.ireduce_scatter, flat, whole, _operation(opts.reduceOp),
                             tensors=[output], finish=self._end(whole, output, after),
                             type=_memory(whole)[1])

    def alltoall(self, outputs, inputs, opts=None):
        for tensors in (inputs, outputs):
            _each(tensors, self._team.size, inputs[0].dtype)
        send = _flat(inputs)
        flat = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=send.dtype)
        request = self._ready.ialltoallv(
            _memory(send)[0], [tensor.numel() for tensor in inputs], None,
            _memory(flat)[0], [tensor.numel() for tensor in outputs], None,
            timeout=self._timeout)
        return self._work(request, outputs, lambda: _spread(flat, outputs))

    def alltoall_base(self, output, tensor, output_sizes, input_sizes, opts=None):
        def counts(sizes, of):
            rows = of.size(0) if of.dim() > 0 else 0
            sizes = sizes or [rows // self._team.size] * self._team.size
            if sum(sizes) != rows:
                raise ValueError(f"a tensor of {rows} rows is divided into {sum(sizes)}")
            return [n * (of.numel() // max(rows, 1)) for n in sizes]

        if not output_sizes and not input_sizes:
            for of in (tensor, output):
                counts(None, of)
            return self._between(self._ready.ialltoall, tensor, output)
        _same_type(tensor.dtype, output.dtype)
        whole = _whole(output)
        request = self._ready.ialltoallv(
            _memory(_whole(tensor))[0], counts(input_sizes, tensor), None, _memory(whole)[0],
            counts(output_sizes, output), None, timeout=self._timeout)
        return self._work(request, [output], self._end(whole, output))

    def barrier(self, opts=None):
        return self._work(self._ready.ibarrier(timeout=self._timeout), [])


def _gone(waiter, team):
    """Called by the garbage collector, which must not call the library."""
    waiter.end()
    _unused.append(team)


def _forked():
    """A child of fork() cannot use the contexts of its parent."""
    global _context
    _context = None
    _unused.clear()


os.register_at_fork(after_in_child=_forked)


def _create(store, rank, size, timeout):
    """Makes a process group. The first rank invents the team's name."""
    global _context
    while _unused:
        _unused.popleft().destroy()
    if _context is None:
        _context = Context()
        atexit.register(_context.close)
    if rank == 0:
        store.set("collnet", "torch-" + os.urandom(12).hex())
    name = store.get("collnet").decode()
    seconds = timeout.total_seconds()
    if seconds > TIMEOUT_MAX:
        seconds = math.inf
    return ProcessGroup(_context.team(name, rank, size, timeout=seconds), seconds)


dist.Backend.register_backend("collnet", _create)
