# SPDX-License-Identifier: BSD-2-Clause
"""
The declarations of <collnet/collnet.h> for ctypes: constants, structures and functions.

tests/meta/python.sh compares them with the header: the values of all constants, the sizes and
offsets of all structures, and the arguments of all functions.
"""
import ctypes
import enum
import math
import operator
import os
import threading
import types
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p, py_object)

SONAME = "libcollnet.so.0"


class Status(enum.IntEnum):
    """Status codes of the library's functions; exceptions have one as their code."""
    OK = 0
    INPROGRESS = 1
    EINVAL = -1
    ENOMEM = -2
    ETIMEOUT = -3
    EPEER = -4
    ERANK = -5
    EMISMATCH = -6
    EPERM = -7
    EIFACE = -8
    EDAEMON = -9
    ELIMIT = -10
    EPROTO = -11
    ETRUNC = -12
    ENOENT = -13
    ESYSTEM = -14
    ETOPO = -15
    EUNSUPPORTED = -16


class LogLevel(enum.IntEnum):
    """The importance of a line of the log."""
    LOG_ERROR = 0
    LOG_WARNING = 1
    LOG_INFO = 2
    LOG_DEBUG = 3


class Mode(enum.IntEnum):
    """How a context reaches the network."""
    MODE_AUTO = 0
    MODE_DAEMON = 1
    MODE_DIRECT = 2


class Type(enum.IntEnum):
    """Types of a reduction's elements."""
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    FLOAT32_INT32 = 13
    FLOAT64_INT32 = 14
    INT16_INT32 = 15
    INT32_INT32 = 16
    INT64_INT32 = 17


class Op(enum.IntEnum):
    """Operations that combine two elements."""
    SUM = 1
    PROD = 2
    MIN = 3
    MAX = 4
    LAND = 5
    LOR = 6
    LXOR = 7
    BAND = 8
    BOR = 9
    BXOR = 10
    MINLOC = 11
    MAXLOC = 12
    USER = 13


ENUMS = (Status, LogLevel, Mode, Type, Op)

NAME_MAX = 63
RANKS_MAX = 4096
BLOCK_MAX = 1 << 30
MESSAGE_MAX = 1 << 30
OUTSTANDING_MAX = 64
ELEMENT_MAX = 1 << 20
TIMEOUT_NONE = 0xFFFFFFFF
TIMEOUT_MAX = 86400  # seconds
WINDOW_AUTO = 0
WINDOW_OFF = 0xFFFFFFFF
CONSTANTS = ("NAME_MAX", "RANKS_MAX", "BLOCK_MAX", "MESSAGE_MAX", "OUTSTANDING_MAX",
             "ELEMENT_MAX", "TIMEOUT_NONE", "WINDOW_AUTO", "WINDOW_OFF")
_WINDOW_MAX = 65535  # frames; without a name in the header

LOG_FN = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
# Addresses as integers; the context is an object.
COMBINE_FN = CFUNCTYPE(None, c_size_t, c_size_t, c_size_t, c_size_t, py_object)


_INTEGERS = {c_int, c_int32, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64}


def whole(name, value, what="an integer"):
    """An integer of any size."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not {what}") from None


def check_callable(name, value):
    if not callable(value):
        raise TypeError(f"{name}: {value!r} is not callable")


def integer(name, kind, value, what="an integer"):
    """An integer of this C type. ctypes alone would silently drop excess bits."""
    value = whole(name, value, what)
    if kind(value).value != value:
        bits, sign = 8 * ctypes.sizeof(kind), kind(-1).value < 0
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
        raise ValueError(f"{name}: {value} is not an integer from {low} to {high}")
    return value


def mode_of(value):
    """A mode by its name, such as "direct"; what is none stays."""
    if not isinstance(value, str):
        return value
    for mode in Mode:
        if value == mode.name[len("MODE_"):].lower():
            return mode
    raise ValueError(f"mode: {value!r} is not auto, daemon or direct")


def sequence(name, values, what):
    """A list from an iterable."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name}: {values!r} is not a sequence of {what}") from None


def integers(name, kind, values):
    """An array of integers of this C type."""
    values = [integer(name, kind, value) for value in sequence(name, values, "integers")]
    return (kind * len(values))(*values)


class _Structure(ctypes.Structure):
    """A structure whose integers are checked when they are set."""

    def __setattr__(self, name, value):
        kind = dict(self._fields_).get(name)
        super().__setattr__(name, integer(name, kind, value) if kind in _INTEGERS else value)


# The classes have the names of the C structures.
class collnet_options(_Structure):
    _fields_ = [
        ("size", c_size_t), ("mode", c_int), ("socket", c_char_p), ("interface", c_char_p),
        ("link", c_char_p), ("node", c_char_p), ("topology", c_char_p), ("cluster", c_uint16),
        ("ethertype", c_uint16), ("spin", c_int), ("timeout_ms", c_uint32),
        ("peer_timeout_ms", c_uint32), ("encapsulation", c_char_p), ("peers", c_char_p),
        ("key", c_char_p)]


class collnet_team_options(_Structure):
    _fields_ = [
        ("size", c_size_t), ("job", c_char_p), ("rank", c_uint32), ("ranks", c_uint32),
        ("timeout_ms", c_uint32), ("secret", c_char_p)]


class collnet_user_op(_Structure):
    _fields_ = [
        ("size", c_size_t), ("element", c_size_t), ("commutative", c_int),
        ("combine", COMBINE_FN), ("context", c_void_p)]


class collnet_coll_options(_Structure):
    _fields_ = [
        ("size", c_size_t), ("algorithm", c_char_p), ("window", c_uint32),
        ("timeout_ms", c_uint32), ("user_op", POINTER(collnet_user_op)), ("persistent", c_int)]


class collnet_address(_Structure):
    _fields_ = [("node", c_char * (NAME_MAX + 1)), ("endpoint", c_uint16)]


class collnet_stats(_Structure):
    _fields_ = [
        ("size", c_size_t), ("frames_sent", c_uint64), ("frames_received", c_uint64),
        ("bytes_sent", c_uint64), ("bytes_received", c_uint64), ("data_sent", c_uint64),
        ("data_resent", c_uint64), ("data_received", c_uint64), ("acks_sent", c_uint64),
        ("ack_bytes_sent", c_uint64), ("naks_sent", c_uint64), ("duplicates", c_uint64),
        ("gaps", c_uint64), ("timeouts", c_uint64), ("busy", c_uint64), ("bad_frames", c_uint64),
        ("foreign_frames", c_uint64), ("stale_frames", c_uint64), ("ring_drops", c_uint64),
        ("cpu_ns", c_uint64), ("rss_bytes", c_uint64), ("window", c_uint32),
        ("window_now", c_uint32), ("window_peak", c_uint32), ("nodes", c_uint32),
        ("jobs", c_uint32), ("mtu", c_uint32), ("link_rate", c_uint64),
        ("version_frames", c_uint64), ("plans", c_uint64), ("adaptive_window", c_uint32),
        ("no_carrier", c_uint8), ("other_heard", c_uint8), ("other_cluster", c_uint16),
        ("interface", c_char * 32), ("link", c_char * 8), ("encapsulation", c_char * 8),
        ("ethertype", c_uint16), ("cluster", c_uint16), ("down", c_uint32),
        ("send_full", c_uint64), ("send_errors", c_uint64), ("authenticated", c_uint64)]


class collnet_node_info(_Structure):
    _fields_ = [
        ("name", c_char * (NAME_MAX + 1)), ("mac", c_uint8 * 6), ("alive", c_uint8),
        ("self", c_uint8), ("mtu", c_uint32), ("wire_version", c_uint32),
        ("heard_ns", c_uint64), ("rtt_ns", c_uint64), ("data_sent", c_uint64),
        ("data_resent", c_uint64), ("data_received", c_uint64),
        ("mismatch", c_char * (NAME_MAX + 33))]


class collnet_job_info(_Structure):
    _fields_ = [
        ("name", c_char * (NAME_MAX + 1)), ("ranks", c_uint32), ("local", c_uint32),
        ("present", c_uint32), ("ready", c_uint32), ("operations", c_uint64)]


STRUCTURES = (collnet_options, collnet_team_options, collnet_user_op, collnet_coll_options,
              collnet_address, collnet_stats, collnet_node_info, collnet_job_info)

_pointer = c_void_p  # of an object of the library, a buffer or an array
_options = POINTER(collnet_coll_options)
_out = POINTER(c_void_p)

# The arguments of each collective between the team and the options.
_collectives = {
    "alltoall": [_pointer, _pointer, c_size_t],
    "allgather": [_pointer, _pointer, c_size_t],
    "bcast": [_pointer, c_size_t, c_uint32],
    "scatter": [_pointer, _pointer, c_size_t, c_uint32],
    "gather": [_pointer, _pointer, c_size_t, c_uint32],
    "alltoallv": [_pointer] * 6,
    "allgatherv": [_pointer, c_size_t, _pointer, _pointer, _pointer],
    "gatherv": [_pointer, c_size_t, _pointer, _pointer, _pointer, c_uint32],
    "scatterv": [_pointer, _pointer, _pointer, _pointer, c_size_t, c_uint32],
    "allreduce": [_pointer, _pointer, c_size_t, c_int, c_int],
    "reduce": [_pointer, _pointer, c_size_t, c_int, c_int, c_uint32],
    "reduce_scatter": [_pointer, _pointer, c_size_t, c_int, c_int],
    "reduce_scatterv": [_pointer, _pointer, _pointer, c_int, c_int],
    "scan": [_pointer, _pointer, c_size_t, c_int, c_int],
    "exscan": [_pointer, _pointer, c_size_t, c_int, c_int],
    "barrier": [],
}

FUNCTIONS = {
    "collnet_version": (c_char_p, []),
    "collnet_strerror": (c_char_p, [c_int]),
    "collnet_error": (c_char_p, [_pointer]),
    "collnet_set_log": (None, [LOG_FN, _pointer]),
    "collnet_options_init": (None, [POINTER(collnet_options)]),
    "collnet_open": (c_int, [POINTER(collnet_options), _out]),
    "collnet_close": (None, [_pointer]),
    "collnet_node_name": (c_char_p, [_pointer]),
    "collnet_alloc": (c_void_p, [_pointer, c_size_t]),
    "collnet_free": (None, [_pointer, _pointer]),
    "collnet_team_options_init": (None, [POINTER(collnet_team_options)]),
    "collnet_team_create": (c_int, [_pointer, POINTER(collnet_team_options), _out]),
    "collnet_team_split": (c_int, [_pointer, c_int32, c_int32, _out]),
    "collnet_team_dup": (c_int, [_pointer, _out]),
    "collnet_team_from_ranks": (c_int, [_pointer, c_uint32, _pointer, _out]),
    "collnet_team_destroy": (None, [_pointer]),
    "collnet_team_rank": (c_uint32, [_pointer]),
    "collnet_team_size": (c_uint32, [_pointer]),
    "collnet_team_nodes": (c_uint32, [_pointer]),
    "collnet_team_node": (c_char_p, [_pointer, c_uint32]),
    "collnet_coll_options_init": (None, [_options]),
    "collnet_type_size": (c_size_t, [c_int]),
    "collnet_test": (c_int, [_pointer]),
    "collnet_wait": (c_int, [_pointer, c_uint32]),
    "collnet_start": (c_int, [_pointer]),
    "collnet_request_free": (c_int, [_pointer]),
    "collnet_testany": (c_int, [c_size_t, _out, POINTER(c_size_t)]),
    "collnet_waitany": (c_int, [c_size_t, _out, POINTER(c_size_t), c_uint32]),
    "collnet_endpoint_open": (c_int, [_pointer, c_uint16, _out]),
    "collnet_endpoint_close": (None, [_pointer]),
    "collnet_endpoint_number": (c_uint16, [_pointer]),
    "collnet_isend": (c_int, [_pointer, POINTER(collnet_address), _pointer, c_size_t, c_uint32,
                              _out]),
    "collnet_irecv": (c_int, [_pointer, POINTER(collnet_address), _pointer, POINTER(c_size_t),
                              c_uint32, _out]),
    "collnet_get_stats": (c_int, [_pointer, POINTER(collnet_stats), c_int]),
    "collnet_get_nodes": (c_int, [_pointer, POINTER(collnet_node_info), POINTER(c_size_t)]),
    "collnet_get_jobs": (c_int, [_pointer, POINTER(collnet_job_info), POINTER(c_size_t)]),
}
# A blocking call is a non-blocking one and a wait, which a signal interrupts.
FUNCTIONS.update(("collnet_i" + name, (c_int, [_pointer] + arguments + [_options, _out]))
                 for name, arguments in _collectives.items())


def _checked(name, function):
    """The function, called with integers of its arguments' types."""
    places = [(i, kind) for i, kind in enumerate(function.argtypes) if kind in _INTEGERS]

    def call(*arguments):
        arguments = list(arguments)
        for i, kind in places:
            arguments[i] = integer(name, kind, arguments[i])
        return function(*arguments)

    call.__name__ = name
    return call if places else function


def _load():
    try:
        library = ctypes.CDLL(SONAME)
    except OSError as error:
        # Under a prefix that the dynamic linker does not search: PREFIX/lib/pythonX.Y/*-packages.
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, SONAME)
        try:
            library = ctypes.CDLL(os.path.normpath(beside))
        except OSError:
            raise ImportError(str(error)) from None
    functions = types.SimpleNamespace(raw=types.SimpleNamespace())
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
        setattr(functions, name, _checked(name, function))
        setattr(functions.raw, name, function)
    return functions


library = _load()


class Handle:
    """Base of objects with one owner in Python: a copy would free the library's object twice."""

    def __reduce_ex__(self, _):
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")


class CollnetError(Exception):
    """A call failed. `code` is a Status; the message names the node, rank and phase."""

    def __init__(self, code, message):
        super().__init__(message)
        try:
            self.code = Status(code)
        except ValueError:  # of a later version
            self.code = code


def error(code, context=None):
    """The exception for the error that a function has just returned to this thread."""
    text = library.collnet_error(context) or library.collnet_strerror(code)
    return CollnetError(code, text.decode(errors="replace"))


class _Thread(threading.local):
    inside = None  # which function of the program's is called by the library


thread = _Thread()


def check_caller():
    """
    The library calls a user-defined operation and the log's function with its lock held. A call of
    the library would wait for that for ever. Whatever calls the library, or takes a lock that is
    held during its calls, checks this first.
    """
    if thread.inside is not None:
        raise CollnetError(Status.EINVAL, f"{thread.inside} must not call collnet")


def seconds(timeout):
    """A timeout as a number."""
    try:
        unknown = math.isnan(timeout)  # float() takes strings, too
    except (TypeError, OverflowError):
        raise TypeError(f"timeout: {timeout!r} is not a number of seconds") from None
    if unknown:
        raise ValueError(f"timeout: {timeout!r} is not a number of seconds")
    return float(timeout)


def milliseconds(timeout):
    """A timeout of the library from seconds; None: the default, infinity: no deadline."""
    if timeout is None:
        return 0
    value = seconds(timeout)
    if value == math.inf:
        return TIMEOUT_NONE
    if not 0 < value <= TIMEOUT_MAX:
        raise ValueError(f"timeout: {timeout!r} is not a positive number of seconds of at most "
                         f"{TIMEOUT_MAX}; math.inf is none")
    return max(1, int(value * 1000))


def peer_milliseconds(timeout):
    """A peer timeout of the library from seconds."""
    if not isinstance(timeout, (int, float)) or not 0.3 <= timeout <= 60:
        raise ValueError(f"peer_timeout: {timeout!r} is not a number of seconds from 0.3 to 60")
    return int(timeout * 1000)


def frames(window):
    """A global window of the library."""
    window = whole("window", window)
    if window not in (WINDOW_AUTO, WINDOW_OFF) and not 1 <= window <= _WINDOW_MAX:
        raise ValueError(f"window: {window} is not WINDOW_AUTO, WINDOW_OFF or 1 to {_WINDOW_MAX} "
                         "frames")
    return window


def text(name, value):
    """A string or path as an argument."""
    try:
        encoded = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not a string") from None
    if b"\0" in encoded:
        raise ValueError(f"{name}: {value!r} has a NUL")
    return encoded


def values(structure):
    """The fields of a structure as a dictionary, without its size."""
    result = {}
    for name, kind in structure._fields_:
        value = getattr(structure, name)
        if isinstance(value, ctypes.Array):
            value = bytes(value)
        elif isinstance(value, bytes):
            value = value.decode(errors="replace")
        result[name] = value
    result.pop("size", None)
    return result
