"""What stands before the routes: the guard, the headers of every answer, errors as one sentence, and who is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lanner.errors import LannerError
from lanner.gateway.admission import Admission
from lanner.gateway.errors import Refused, refusal_of
from lanner.gateway.guard import SECURITY_HEADERS, Guard
from lanner.telemetry.records import Listener, Request

#: Requests that are worked on at once, but for the page's files: many more than predictions that wait, so that others
#: hear of these.
REQUESTS = 128

#: The headers of the W3C Trace Context.
_TRACE_CONTEXT = ("traceparent", "tracestate")


class Front:
    """The outermost layer of the application: nothing that happens behind it reaches the web server's own log.

    Args:
        app: The routes.
        guard: Who is let in.
        listeners: Told of every request when it was answered.
    """

    def __init__(self, app: ASGIApp, guard: Guard, listeners: Sequence[Listener]) -> None:
        self._app = app
        self._guard = guard
        self._listeners = listeners
        self._admission = Admission(REQUESTS)
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        start, sent = time.monotonic(), _Sent(send)
        scope["state"] = {}
        fault = None
        try:
            await self._answer(scope, receive, sent)
        except Exception as error:  # noqa: BLE001 - a message could hold what the caller sent, so that its kind is kept
            fault = type(error).__name__
        self._tell(scope, sent.status, time.monotonic() - start, fault)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            try:
                self._guard.check(scope["method"], scope["path"], Headers(scope=scope))
                if scope["path"] not in self._guard.public:
                    held.enter_context(self._admission.admit())
            except Refused as refused:
                await _refusal(refused)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    def _tell(self, scope: Scope, status: int, seconds: float, fault: str | None) -> None:
        self._count += 1
        host, port = scope.get("client") or ("-", 0)
        state, headers = scope["state"], Headers(scope=scope)
        request = Request(
            number=self._count,
            time=time.time(),
            peer=f"{host}:{port}",
            method=scope["method"],
            route=getattr(scope.get("route"), "path", None),
            status=status,
            seconds=seconds,
            model=state.get("model"),
            mode=state.get("mode"),
            work=state.get("work"),
            fault=fault,
            trace={name: headers[name] for name in _TRACE_CONTEXT if name in headers},
        )
        for listener in self._listeners:
            listener(request)


class _Sent:
    """Sends an answer with the headers that every answer has, and keeps its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send one part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if self.status >= HTTPStatus.BAD_REQUEST:
                # What is left of a body that was refused is not read.
                headers["Connection"] = "close"
        await self._send(message)


def answer_errors(app: FastAPI) -> None:
    """Answer every error of the routes as ``{"error": "one sentence"}``."""

    @app.exception_handler(Refused)
    async def refused(_request: HttpRequest, error: Refused) -> JSONResponse:
        return _refusal(error)

    @app.exception_handler(LannerError)
    async def failed(_request: HttpRequest, error: LannerError) -> JSONResponse:
        return _refusal(refusal_of(error))

    @app.exception_handler(Exception)
    async def broken(_request: HttpRequest, error: Exception) -> JSONResponse:
        return _refusal(Refused(500, f"the gateway failed with {type(error).__name__}; please report it"))

    @app.exception_handler(HTTPException)
    async def not_routed(_request: HttpRequest, error: HTTPException) -> JSONResponse:
        known = {404: "there is nothing at this path", 405: "this path does not accept that method"}
        headers: dict[str, Any] = dict(error.headers or {})
        return _refusal(
            Refused(error.status_code, known.get(error.status_code, "the request is not accepted"), headers)
        )


def _refusal(refused: Refused) -> JSONResponse:
    return JSONResponse({"error": refused.sentence}, refused.status, refused.headers)
