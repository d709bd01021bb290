"""An event of a command that runs until it is stopped: a line for people, or an object for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time as now

#: What a line of the log is.
FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: What, for programs.
        line: The line for people; None where they are told otherwise.
        level: ``info``, ``warning`` or ``error``.
        time: When, in seconds since 1970.
        fields: What is known of it; those that are None are left out.
    """

    name: str
    line: str | None
    level: str = "info"
    time: float = field(default_factory=now)
    fields: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> str:
        """The line for programs: one JSON object, with the time in UTC."""
        time = datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {name: value for name, value in self.fields.items() if value is not None}
        return json.dumps({"time": time, "level": self.level, "event": self.name, **told})


def add_log_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--log-format``."""
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default="text",
        help="format of standard error: text for people, or a JSON object on each line (default: text)",
    )
