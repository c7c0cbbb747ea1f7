# SPDX-License-Identifier: BSD-2-Clause
"""
collnet: collective communication on plain Ethernet.

    import collnet
    with collnet.Context() as context, context.team() as team:
        ...
        team.allreduce(send, recv, collnet.SUM)

Buffers are objects with the buffer protocol: bytearray, array.array, memoryview, NumPy arrays.
collnet_python(7) describes the package.
"""
from ._buffer import UserOp
from ._context import Context, Endpoint, set_log
from ._library import (ENUMS, BLOCK_MAX, ELEMENT_MAX, MESSAGE_MAX, NAME_MAX, OUTSTANDING_MAX,
                       RANKS_MAX, WINDOW_AUTO, WINDOW_OFF, CollnetError, LogLevel, Mode, Op,
                       Status, Type, library)
from ._request import Request, waitall, waitany
from ._team import IN_PLACE, Team

# SUM, FLOAT64, EPEER and so on: the constants of the C interface without COLLNET_.
globals().update((member.name, member) for enum in ENUMS for member in enum)

__version__ = library.collnet_version().decode()
