"""Whether the parties' machines have the memory that a model takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanner.errors import MisuseError

#: More than any machine has.
MOST_CORES = 65_536


@dataclass(frozen=True, slots=True)
class Machine:
    """A party's machine.

    Attributes:
        cores: Its cores, from 1; None for as many as the machine of the kernel times has.
        memory: Bytes that it has for the session, or for all sessions of a server; None for whatever they take.
    """

    cores: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        """Check that there may be such a machine.

        Raises:
            MisuseError: If there is none.
        """
        if self.cores is not None and not 1 <= self.cores <= MOST_CORES:
            raise MisuseError(f"the number of cores is {self.cores}", fix=f"give 1 to {MOST_CORES}")
        if self.memory is not None and self.memory < 0:
            raise MisuseError(f"the memory is {self.memory} bytes", fix="give 0 or more")


#: The machine that the kernel times are of, with all the memory that there may be.
LIKE_THE_TABLES = Machine()


@dataclass(frozen=True, slots=True)
class Fits:
    """How what a session takes goes into the parties' memory.

    Attributes:
        client: Whether the client has enough for one prediction.
        server: Whether the server has.
        client_bytes: What one prediction takes of the client's.
        server_bytes: What the server's model and a session with one prediction take.
        sessions: Sessions with a prediction each that the server has memory for at once; None if its memory is not
            bounded.
    """

    client: bool
    server: bool
    client_bytes: int
    server_bytes: int
    sessions: int | None

    @classmethod
    def of(cls, memory: Mapping[str, int], client: Machine, server: Machine) -> Fits:
        """What a document's memory, in bytes by what it is, makes of these machines."""
        layouts = memory["layout_bytes"]
        model = memory["server_bytes"] + layouts
        each = sum(memory[f"server_bytes_{what}"] for what in ("per_session", "per_prediction", "at_work"))
        client_bytes = layouts + memory["client_bytes_per_prediction"] + memory["client_bytes_at_work"]
        left = None if server.memory is None else max(server.memory - model, 0)
        return cls(
            client=client.memory is None or client_bytes <= client.memory,
            server=server.memory is None or model + each <= server.memory,
            client_bytes=client_bytes,
            server_bytes=model + each,
            sessions=None if left is None else left // max(each, 1),
        )
