"""Room for connections among the files that the system lets a process open."""

from __future__ import annotations

from lanner.errors import MisuseError

#: Open files that a session takes, and those for the program, its state and connections that are no session yet.
OF_A_SESSION, OTHERS = 2, 256


#: The fewest connections that a gateway is of use with.
FEWEST_CONNECTIONS = 32


def allow_open_files(sessions: int) -> None:
    """Have the system let this process open what so many sessions at once take.

    Systems often allow 1024 at first and many more to those who ask. Does nothing where they are not counted.

    Raises:
        MisuseError: If the system does not allow as many.
    """
    needed = OF_A_SESSION * sessions + OTHERS
    allowed = _allow(needed)
    if allowed < needed:
        raise MisuseError(
            f"{sessions} sessions at once need {needed} open files, and the system allows {allowed}",
            where="--max-sessions",
            fix="raise that (`ulimit -n`, LimitNOFILE of a unit), or give fewer sessions",
        )


def connections_within_open_files(most: int) -> int:
    """How many connections a gateway may have: `most`, or what the system allows.

    Raises:
        MisuseError: If that is too few.
    """
    allowed = _allow(most + OTHERS) - OTHERS
    if allowed < FEWEST_CONNECTIONS:
        raise MisuseError(
            f"the system allows {allowed + OTHERS} open files, and a gateway needs {FEWEST_CONNECTIONS + OTHERS}",
            fix="raise that (`ulimit -n`, LimitNOFILE of a unit)",
        )
    return allowed


def _allow(needed: int) -> int:
    """Have the system allow so many open files, or as many as it does: how many these are, `needed` at most."""
    try:
        import resource
    except ImportError:
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    granted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return granted
