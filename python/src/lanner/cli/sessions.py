"""The server's log: one line for each connection that ended or was turned away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lanner.cli.output import Output, duration, size
from lanner.server import Server
from lanner.wording import counted

#: How a connection ended, before the reason: where a model was agreed on, and where not.
_ENDINGS = {
    "done": ("done", "asked for the models' names"),
    "stopped": ("ended by the server's stop", "ended by the server's stop"),
    "busy": ("turned away, busy", "turned away, busy"),
    "failed": ("failed", "refused"),
    "no_connection": ("no connection", "no connection"),
}


def log_sessions(server: Server, output: Output) -> None:
    """Log what became of connections since the last time."""
    entries, omitted = server.journal()
    for entry in entries:
        output.log(session_line(entry))
    if omitted:
        output.log(f"{counted(omitted, 'connection')} more ended in this time")


def session_line(entry: Mapping[str, Any]) -> str:
    """Time, peer, model, predictions, and how a connection ended; nothing secret is known of it."""
    time = datetime.fromtimestamp(entry["time"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    ending = _ending(entry)
    # What a session that was cut was waiting for is of no interest.
    reason = f": {entry['reason']}" if entry["reason"] and entry["ending"] != "stopped" else ""
    told = [f"{time} {entry['peer']}"]
    if entry["model"] is not None:
        told.append(f"model {entry['model']}, {counted(entry['predictions'], 'prediction')}")
    if entry["seconds"] > 0:
        told.append(f"{duration(entry['seconds'])}, {size(entry['sent'])} sent, {size(entry['received'])} received")
    return "; ".join([*told, f"{ending}{reason}"])


def _ending(entry: Mapping[str, Any]) -> str:
    agreed, not_agreed = _ENDINGS[entry["ending"]]
    return not_agreed if entry["model"] is None else agreed
