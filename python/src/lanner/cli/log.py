"""What the log of a server and of a gateway says: an event for each connection, and for each request, that ended."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from lanner.cli.events import Event
from lanner.cli.output import Output, duration, size
from lanner.telemetry.records import Connection, Request
from lanner.wording import counted


class SessionLog:
    """Logs what became of connections to a server.

    Args:
        output: Where the log goes.
    """

    def __init__(self, output: Output) -> None:
        self._output = output

    def ended(self, connection: Connection) -> None:
        """Log a connection."""
        self._output.log(connection_event(connection))

    def omitted(self, count: int) -> None:
        """Log that there were more of them."""
        line = f"{counted(count, 'connection')} more ended in this time"
        self._output.log(Event("sessions_omitted", line, "warning", fields={"sessions": count}))


def connection_event(connection: Connection) -> Event:
    """Peer, model, predictions, and how a connection ended; nothing secret is known of it."""
    told = [f"{_local(connection.time)} session {connection.number}, {connection.peer}"]
    if connection.certificate is not None:
        told.append(f"certificate {connection.certificate}")
    if connection.model is not None:
        told.append(f"model {connection.model}, {counted(connection.predictions, 'prediction')}")
    if connection.seconds > 0:
        sent, received = size(connection.bytes_sent), size(connection.bytes_received)
        told.append(f"{duration(connection.seconds)}, {sent} sent, {received} received")
    told.append(_ENDINGS[connection.ending] + (f": {connection.reason}" if connection.reason else ""))
    return Event(
        "session_ended",
        "; ".join(told),
        "info" if connection.ending in ("done", "listed", "stopped") else "warning",
        connection.time,
        {
            "session": connection.number,
            "peer": connection.peer,
            "certificate": connection.certificate,
            "model": connection.model,
            "mode": connection.mode,
            "predictions": connection.predictions,
            "seconds": connection.seconds,
            "sent_bytes": connection.bytes_sent,
            "received_bytes": connection.bytes_received,
            "ending": connection.ending,
            "cause": connection.cause or None,
            "reason": connection.reason or None,
        },
    )


def request_event(request: Request) -> Event:
    """Caller, model, how many samples, how long, and the status. No input, no result, no path."""
    told = [f"{_local(request.time)} {request.peer}"]
    if request.model is not None:
        told.append(f"model {request.model}, {counted(request.samples, 'prediction')}")
    told += [duration(request.seconds), f"status {request.status}"]
    if request.fault is not None:
        told.append(f"failed with {request.fault}")
    phases = [] if request.work is None else request.work.phases.values()
    return Event(
        "request_answered",
        "; ".join(told),
        _request_level(request),
        request.time,
        {
            "request": request.number,
            "peer": request.peer,
            "route": request.route,
            "model": request.model,
            "mode": request.mode,
            "predictions": request.samples,
            "seconds": request.seconds,
            "sent_bytes": sum(phase.bytes_sent for phase in phases),
            "received_bytes": sum(phase.bytes_received for phase in phases),
            "status": request.status,
            "reason": request.fault,
        },
    )


def _request_level(request: Request) -> str:
    if request.fault is not None:
        return "error"
    return "warning" if request.status >= HTTPStatus.BAD_REQUEST else "info"


def _local(time: float) -> str:
    """A time as people read it where the command runs."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")


_ENDINGS = {
    "done": "done",
    "listed": "asked for the models' names",
    "stopped": "ended by the server's stop",
    "busy": "turned away, busy",
    "failed": "failed",
    "refused": "refused",
    "no_connection": "no connection",
}
