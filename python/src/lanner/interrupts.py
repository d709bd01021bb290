"""Keeps Ctrl-C alive while the native module blocks.

Python runs signal handlers on its main thread, between bytecodes: a native call that waits for the peer would hold them
back until it returns. The call is therefore made on another thread while the main one waits in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")


def interruptible(call: Callable[[], T]) -> T:
    """Make a blocking native call so that a signal reaches the caller at once.

    When a signal's handler raises (KeyboardInterrupt), the call is abandoned: it ends on its own when the native side
    times out, and whatever it works on must not be used again.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed over to the caller whole
            future.set_exception(error)

    threading.Thread(target=work, name="lanner-native", daemon=True).start()
    try:
        # A signal may land on any thread; only a main thread that runs bytecode now and then sees those.
        while not wait([future], timeout=0.2).done:
            pass
        return future.result()
    finally:
        if not future.done():
            abandon(future)


def abandon(call: Future[Any]) -> None:
    """Give up a native call that another thread makes, at the end of the program."""
    _abandoned.append(call)


def abandoned_calls() -> bool:
    """Whether a native call that was abandoned still runs, so that the interpreter cannot end in good order."""
    return any(not future.done() for future in _abandoned)


_abandoned: list[Future[Any]] = []
