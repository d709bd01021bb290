"""Ctrl-C reaches the caller while a native call blocks."""

import signal
import threading
import time

import pytest

from lanner.interrupts import abandoned_calls, interruptible

# Signals of other tests, and a handler that a job in the background has not, would disturb them.
pytestmark = pytest.mark.alone


def test_result_and_error_of_the_call_pass_through() -> None:
    assert interruptible(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_signal_ends_the_wait_before_the_call() -> None:
    release = threading.Event()
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: release.wait(30))
        assert time.monotonic() - started < 10
        assert abandoned_calls()
    finally:
        release.set()
    while abandoned_calls():
        time.sleep(0.01)


def test_other_threads_call_directly() -> None:
    caller: list[str] = []

    def work() -> None:
        interruptible(lambda: caller.append(threading.current_thread().name))

    thread = threading.Thread(target=work, name="other")
    thread.start()
    thread.join()
    assert caller == ["other"]
