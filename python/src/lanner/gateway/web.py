"""The web server that answers a gateway's callers until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import Future
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from lanner.accepting import Listener
from lanner.connections import Bounds
from lanner.gateway.connections import BOUNDS, HEAD_BYTES, IDLE_SECONDS, listen

#: Seconds that requests under way may take to end after SIGTERM.
DRAIN_SECONDS = 30


class WebServer(uvicorn.Server):
    """A web server whose connections are bounded, and whose end by a signal is no error.

    Args:
        app: The application.
        bound: Where it listens.
        context: The context for TLS, or None without it.
        bounds: How many connections there may be.
    """

    def __init__(
        self, app: ASGIApp, bound: socket.socket, context: ssl.SSLContext | None, bounds: Bounds = BOUNDS
    ) -> None:
        config = uvicorn.Config(
            app,
            # Its log could hold what callers send; the application keeps one that does not.
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            interface="asgi3",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        super().__init__(config)
        self._bound = bound
        self._context = context
        self._bounds = bounds
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_answering(self) -> bool:
        """Whether callers can connect, and will be answered."""
        return self.started and not self.should_exit

    def turns(self) -> Future[None]:
        """What is done as soon as the event loop turns; for other threads."""
        done: Future[None] = Future()

        def tell() -> None:
            if done.set_running_or_notify_cancel():
                done.set_result(None)

        # A loop that is closed turns no more.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(tell)
        return done

    def answer_until_stopped(self) -> None:
        """Answer until SIGTERM or Ctrl-C.

        Requests under way have `DRAIN_SECONDS` to end, and a second signal ends them.
        """
        with self.stopped_by_signals():
            self.answer()

    def answer(self) -> None:
        """Answer until it is to stop."""
        # Connections that say nothing are watched by their descriptors, which the loop of Windows cannot do.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self.serve())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - it has its own
        """Listen."""
        # It accepts nothing by itself.
        await super().startup([])
        self._loop = asyncio.get_running_loop()
        self._listener = listen(self, self._bound, self._context, self._bounds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and let requests under way end."""
        if self._listener is not None:
            self._listener.close()
        self._bound.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `stopped_by_signals`: this one would raise them again in the end."""
        yield

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Stop at SIGTERM, and at Ctrl-C unless that is ignored, as in a shell's background job."""
        signals = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signals.append(signal.SIGINT)
        before = {number: signal.signal(number, self._stop) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
