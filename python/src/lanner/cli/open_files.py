"""Room for the connections of a server's sessions among the files that the system lets a process open."""

from __future__ import annotations

from lanner.errors import MisuseError

#: Open files that a session takes, and those for the program, its state and connections that are no session yet.
OF_A_SESSION, OTHERS = 2, 256


def allow_open_files(sessions: int) -> None:
    """Have the system let this process open what so many sessions at once take.

    Systems often allow 1024 at first and many more to those who ask. Does nothing where they are not counted.

    Raises:
        MisuseError: If the system does not allow as many.
    """
    try:
        import resource
    except ImportError:
        return
    needed = OF_A_SESSION * sessions + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise MisuseError(
            f"{sessions} sessions at once need {needed} open files, and the system allows {hard}",
            where="--max-sessions",
            fix="raise that (`ulimit -n`, LimitNOFILE of a unit), or give fewer sessions",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
