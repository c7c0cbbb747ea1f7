# SPDX-License-Identifier: BSD-2-Clause
"""
The memory of objects with the buffer protocol: bytes, bytearray, array, memoryview, NumPy arrays.

A Buffer holds its object's memory in place until it is released; requests release theirs when they
complete.
"""
import ctypes
import functools
import re
import struct
import sys
from ctypes import (POINTER, byref, c_char_p, c_int, c_size_t, c_ssize_t, c_void_p, py_object,
                    pythonapi)

from ._library import (COMBINE_FN, ELEMENT_MAX, Op, Type, check_callable, check_caller,
                       collnet_user_op, integer, integers, library, sequence, thread, whole)


class _PyBuffer(ctypes.Structure):
    """Py_buffer of the stable ABI."""
    _fields_ = [
        ("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t),
        ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p),
        ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


# By index, pythonapi makes functions of this module's own: others may declare other types for them.
_get_buffer = pythonapi["PyObject_GetBuffer"]
_get_buffer.argtypes = [py_object, POINTER(_PyBuffer), c_int]
_get_buffer.restype = c_int
_release_buffer = pythonapi["PyBuffer_Release"]
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None

_WRITABLE, _FORMAT, _C_CONTIGUOUS = 0x1, 0x4, 0x38

_FIELD_NAMES = re.compile(":[^:]*:")  # in the format of a structure


class Buffer:
    """The memory of one object: address, bytes, itemsize, format."""

    def __init__(self, name, owner, writable=False):
        flags = _FORMAT | _C_CONTIGUOUS | (_WRITABLE if writable else 0)
        view = _PyBuffer()
        pointer = byref(view)
        self._memory = None
        try:
            self._memory = memoryview(owner)  # holds it; the address needs a Py_buffer
            _get_buffer(self._memory, pointer, flags)
            self.name = name
            self.address = view.buf
            self.bytes = view.len
            self.itemsize = view.itemsize
            self.format = (view.format or b"B").decode()
        except TypeError:
            raise TypeError(f"{name}: {type(owner).__name__!r} has no buffer") from None
        except (BufferError, ValueError) as error:
            held = self._memory
            why = (error if held is None else
                   "the buffer is not contiguous" if not held.c_contiguous else
                   "the buffer is read-only" if writable and held.readonly else error)
            raise BufferError(f"{name}: {why}") from None
        finally:
            _release_buffer(pointer)
        if "O" in self.format and "O" in _FIELD_NAMES.sub("", self.format):
            raise TypeError(f"{name}: the buffer has addresses of Python objects, which another "
                            "process cannot use")

    def release(self):
        self._memory = None

    def has(self, expected):
        """Requires a number of bytes."""
        if self.bytes != expected:
            raise ValueError(f"{self.name} has {self.bytes} bytes instead of {expected}")

    def block(self, ranks):
        """The bytes of one of as many equal blocks."""
        if self.bytes % ranks != 0:
            raise ValueError(
                f"{self.name} has {self.bytes} bytes, which cannot be divided by {ranks} ranks")
        if self.bytes // ranks % max(self.itemsize, 1) != 0:
            raise ValueError(f"{self.name} has {self.bytes // self.itemsize} elements, which cannot "
                             f"be divided by {ranks} ranks")
        return self.bytes // ranks

    def blocks(self, ranks, counts, displs, required=True):
        """Counts and displacements of elements, as arrays of bytes."""
        if counts is None:
            raise TypeError(f"the counts of {self.name} are missing")
        arrays = []
        for what, given in (("counts", counts), ("displacements", displs)):
            if given is None:
                arrays.append(None)
                continue
            name = f"the {what} of {self.name}"
            given = [whole(name, n) for n in sequence(name, given, "integers")]
            if len(given) != ranks:
                raise ValueError(f"{self.name}: {len(given)} {what} for {ranks} ranks")
            if min(given) < 0:
                raise ValueError(f"{self.name}: negative {what}")
            arrays.append([n * self.itemsize for n in given])
        counts, displs = arrays
        ends = [sum(counts)] if displs is None else [
            at + n for at, n in zip(displs, counts) if n > 0]
        if max(ends, default=0) > self.bytes:
            raise ValueError(
                f"{self.name} has {self.bytes} bytes, and the blocks end at {max(ends)}")
        return (integers("counts", c_size_t, counts),
                None if displs is None else integers("displacements", c_size_t, displs))

    def elements(self, op, chosen):
        """The number of elements and their type, for a reduction."""
        if isinstance(op, UserOp):
            size = op.element or self.itemsize
            if self.bytes % size != 0:
                raise ValueError(f"{self.name} has {self.bytes} bytes, not elements of {size}")
            return self.bytes // size, 0
        if chosen is not None:
            chosen = integer("type", c_int, chosen, "a type such as FLOAT64")
            size = library.collnet_type_size(chosen)
            if size == 0:
                raise ValueError(f"there is no type {chosen!r}")
            if self.bytes % size != 0:
                raise ValueError(f"{self.name} has {self.bytes} bytes, not elements of {size}")
            return self.bytes // size, chosen
        return self._by_format(op)

    def _code(self):
        """The format without its byte order, and whether that is this machine's."""
        order, code = "@", self.format
        if code[:1] in "@=<>!":
            order, code = code[0], code[1:]
        return code, order in "@=" or (order == "<") == (sys.byteorder == "little")

    def native(self):
        """The format as memoryview.cast() has it, or that of bytes if it has none."""
        code, native = self._code()
        if native or self.itemsize == 1:
            for known, codes in _NATIVE.items():
                if len(code) == 1 and code in known:
                    return next((c for c in codes if struct.calcsize(c) == self.itemsize), "B")
        return "B"

    def _by_format(self, op):
        code, native = self._code()
        count = self.bytes // max(self.itemsize, 1)
        kind = None
        if code in ("Zf", "Zd") and op == Op.SUM:  # the sums of both parts
            count, kind = 2 * count, _FLOATS[self.itemsize // 2]
        elif code == "?" and op != Op.SUM:
            kind = Type.UINT8
        elif len(code) == 1 and code in "efd":
            kind = _FLOATS[self.itemsize]
        elif len(code) == 1 and code in "bhilqn":
            kind = _SIGNED[self.itemsize]
        elif len(code) == 1 and code in "BHILQN":
            kind = _UNSIGNED[self.itemsize]
        if kind is None or not native and self.itemsize > 1:
            raise TypeError(f"{self.name}: no reduction of the format {self.format!r}")
        return count, kind


# Codes, and those of each size; the size of an 'l' depends on the platform of its writer.
_NATIVE = {"bhilqn": "bhiq", "BHILQN": "BHIQ", "fd": "fd", "?": "?", "c": "c"}
_FLOATS = {2: Type.FLOAT16, 4: Type.FLOAT32, 8: Type.FLOAT64}
_SIGNED = {1: Type.INT8, 2: Type.INT16, 4: Type.INT32, 8: Type.INT64}
_UNSIGNED = {1: Type.UINT8, 2: Type.UINT16, 4: Type.UINT32, 8: Type.UINT64}


class UserOp:
    """
    A user-defined operation, which must be associative.

    `function(left, right, out)` is called with memoryviews of as many elements each and sets
    out[i] = left[i] op right[i]. `out` may be the memory of `left` or `right`. The views have the
    format of the call's buffers, or consist of bytes if memoryview has no such format: complex and
    half numbers, structures, and another byte order. They are released when the function returns;
    what is made of them, such as slices and arrays, is then invalid. It must not call this library.
    If it raises an exception, so does the call, on this rank.

    commutative: False combines the contributions in the order of the ranks.
    element: bytes of an element; by default the item size of the buffer.
    """

    def __init__(self, function, commutative=True, element=None):
        check_callable("function", function)
        if element is not None:
            element = whole("element", element)
            if not 1 <= element <= ELEMENT_MAX:
                raise ValueError(
                    f"element: {element} is not a number of bytes from 1 to {ELEMENT_MAX}")
        self.function = function
        self.commutative = commutative
        self.element = element


# What the library passes to an operation: left, right, out, the number of elements.
_ARGUMENTS = struct.Struct("4N")
_AND_CALL = struct.Struct("5N")


class UserCall:
    """
    A user-defined operation in one call: its structure, and the exception that it raised.

    The handler of a signal can run before the first instruction of a Python function. Its exception
    would be lost there, and nothing combined. So the library calls a function of C, pack_into(),
    which stores the arguments and asks the last one, this object, for its __index__(). That resumes
    a generator within its `try`.
    """
    __slots__ = ("structure", "_function", "_view", "_arguments", "_calls", "_failures",
                 "__index__")

    def __init__(self, op, buffer):
        check_caller()
        element = op.element or buffer.itemsize
        code = buffer.native() if op.element in (None, buffer.itemsize) else "B"

        def view(address, count):
            memory = (ctypes.c_ubyte * (count * element)).from_address(address)
            return memoryview(memory).cast("B").cast(code)

        self._function = op.function
        self._view = view
        self._arguments = bytearray(_AND_CALL.size)
        self._calls = None
        self.structure = collnet_user_op(
            size=ctypes.sizeof(collnet_user_op), element=element,
            commutative=1 if op.commutative else 0, context=id(self),
            combine=COMBINE_FN(functools.partial(_AND_CALL.pack_into, self._arguments, 0)))
        self.start()

    def start(self):
        """Before the first call, and before those that follow a failure."""
        self.end()
        self._arguments[:] = bytes(_AND_CALL.size)
        self._failures = [None]
        self._calls = _calls(self._function, self._view, self._arguments, self._failures)
        next(self._calls)
        self.__index__ = self._calls.__next__

    def end(self):
        """After the last call. An exception of a signal's handler in the collector would be lost."""
        if self._calls is not None:
            self._calls.close()

    @property
    def failure(self):
        """The first exception; one of its own if a call has begun and not ended."""
        if self._failures[0] is None and any(self._arguments):
            return InterruptedError("a signal has interrupted the operation's function")
        return self._failures[0]


def _calls(function, view, arguments, failures):
    """
    A generator that is resumed once per call. No handler of a signal runs between a `yield from` and
    the instruction next to it. Those that run while thread.inside is set must not call the library.
    """
    none, once, called = bytes(len(arguments)), (0,), None
    while True:
        try:
            while True:
                thread.inside = called = None
                yield from once
                thread.inside = called = "a reduction's function"
                _combine(function, view, *_ARGUMENTS.unpack_from(arguments))
                arguments[:] = none
        except BaseException as error:  # it must not unwind into the library
            if not called and error.__class__ is GeneratorExit:  # closed
                raise
            failures[0] = failures[0] or error
            thread.inside = None


def _combine(function, view, left, right, out, count):
    views = []
    try:
        views += [view(left, count).toreadonly(), view(right, count).toreadonly(),
                  view(out, count)]
        function(*views)
    finally:
        for kept in views:
            try:
                kept.release()
            except BufferError:  # an array holds it
                pass
