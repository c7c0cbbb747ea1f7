# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the Python package have in common."""
import array
import os
import signal
import sys

rank = os.environ["COLLNET_RANK"]


def zeros(n, code="i"):
    return array.array(code, [77] * n)


def expect(got, wanted, what):
    got, wanted = list(got), list(wanted)
    if got != wanted:
        sys.exit(f"rank {rank}: {what}: {got} instead of {wanted}")


def raises(kind, text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        if text not in str(error):
            sys.exit(f"rank {rank}: '{error}' does not have '{text}'")
        return error
    sys.exit(f"rank {rank}: no exception with '{text}'")


def alarm():
    """A signal comes soon, whose handler raises an exception."""
    def stop(*_):
        raise InterruptedError("by a signal")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
