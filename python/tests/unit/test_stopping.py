"""What a command that runs until it is stopped waits for."""

from __future__ import annotations

import os
import signal
import threading
import time

from lanner.cli.stopping import Stopping


def test_waiting_ends_when_it_is_said_and_not_before() -> None:
    stopping = Stopping()
    assert not stopping.wait(0.01)
    assert not stopping.is_set()
    begun = time.monotonic()
    threading.Timer(0.05, stopping.set).start()
    assert stopping.wait(60)
    assert stopping.is_set()
    assert time.monotonic() - begun < 30
    # And ever after.
    assert stopping.wait(60)
    assert stopping.wait(60)


def test_signals_that_come_in_one_moment_all_stop_it() -> None:
    """Each handler may begin within another, wherever that is."""
    stopping = Stopping()
    numbers = [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2]
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    sent = threading.Event()

    def send() -> None:
        for _ in range(2000):
            for number in numbers:
                os.kill(os.getpid(), number)
        sent.set()

    try:
        sender = threading.Thread(target=send)
        sender.start()
        while not sent.is_set():
            stopping.wait(0.001)
        sender.join(60)
        assert not sender.is_alive()
        assert stopping.is_set()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
