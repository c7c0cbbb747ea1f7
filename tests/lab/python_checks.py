# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the Python package have in common."""
import array
import os
import signal
import sys
import threading
import time

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


def signal_soon(came):
    """A signal comes soon, and then there is the file."""
    def send():
        time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
        open(came, "w").close()

    threading.Thread(target=send, daemon=True).start()


def remove(came):
    """The file of a signal, of an earlier run."""
    if os.path.exists(came):
        os.remove(came)


def await_file(came):
    while not os.path.exists(came):
        time.sleep(0.002)


def alarm(came=os.devnull):
    """A signal comes soon, whose handler raises an exception, and then there is the file."""
    def stop(*_):
        raise InterruptedError("by a signal")

    signal.signal(signal.SIGALRM, stop)
    signal_soon(came)
