"""Which table of kernel times is used: that of this machine, which is measured where there is none, or another.

A table says what operations take. One comes with the package, of another machine. ``lanner doctor --calibrate`` fits
one to benchmarks of this machine in some minutes; the first estimate measures one in about a second
(`lanner.quick_times`), unless other programs keep it busy. Both are kept in the state directory, with the machine
that they are of: where a state directory was copied to another machine, its tables are left alone.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanner import _native
from lanner.benchmarks.machine import Ticks, cores, processor
from lanner.errors import LannerError, MisuseError, native_errors
from lanner.files import check_file, why, write_whole
from lanner.state import state_directory, state_path
from lanner.wording import counted

#: The file of a state directory that holds what ``lanner doctor --calibrate`` measured.
KERNELS = "kernels.json"

#: The file of a state directory that holds what was measured in a second.
QUICK = "quick-kernels.json"

#: Holds back a process that would measure while another does.
LOCK = "quick-kernels.lock"

#: The part of the machine's cores that other programs may have while it is measured.
BUSY = 0.2

#: The environment variable that names a table where no option does.
VARIABLE = "LANNER_KERNEL_TIMES"

#: What names a table, other than the path of one: the one that is kept; the package's; one that is measured now.
STORED, SHIPPED, MEASURE = "stored", "shipped", "measure"


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """A table of what operations take, and where it is from.

    Attributes:
        table: ``shipped`` with the package, ``quick`` if it was measured in a second, or ``calibrated``.
        machine: The machine that it is of, in words.
        measured: When it was measured, in UTC; None of the package's, and of those that earlier versions wrote.
        sha256: The hash of all its rates, in hexadecimal.
        note: What its reader should know, a sentence without a full stop; None where there is nothing.
        text: The table as JSON; None of the package's.
    """

    table: str
    machine: str
    measured: str | None
    sha256: str
    note: str | None
    text: str | None

    @classmethod
    def of_text(cls, text: str | None, note: str | None = None) -> KernelTimes:
        """A table of JSON; None is the package's.

        Raises:
            MisuseError: If it is damaged.
        """
        with native_errors():
            facts: dict[str, Any] = json.loads(_native.describe_kernel_times(text))
        return cls(**facts, note=note, text=text)

    def document(self) -> dict[str, Any]:
        """What ``--json`` tells of it."""
        return {name: value for name, value in asdict(self).items() if name != "text"}

    def describe(self) -> str:
        """Whose times they are, for people."""
        if self.table == "shipped":
            return f"kernel times: those of the package, measured on {self.machine}"
        how = "measured in a second" if self.table == "quick" else "measured by lanner doctor --calibrate"
        when = "" if self.measured is None else f" on {self.measured[:10]}"
        return f"kernel times: those of {self.machine}, {how}{when}"


#: What `lanner.compile` and estimates take: a table, the path of one, or one of `STORED`, `SHIPPED` and `MEASURE`.
Chosen = str | Path | KernelTimes | None


def stored_times(chosen: Chosen = None, state_dir: str | Path | None = None) -> KernelTimes:
    """The table that is chosen, without measuring one: where none is kept for this machine, the package's.

    Args:
        chosen: A table, or what names one; None is what ``$LANNER_KERNEL_TIMES`` names, else `STORED`.
        state_dir: Where tables are kept; see `lanner.state`.

    Raises:
        MisuseError: If there is no such table, or it is damaged.
    """
    return _times(chosen, state_dir, measures=False)


def measured_times(chosen: Chosen = None, state_dir: str | Path | None = None) -> KernelTimes:
    """As `stored_times`; but where none is kept for this machine, one is measured in about a second, and kept."""
    return _times(chosen, state_dir, measures=True)


def origin(table: str) -> dict[str, Any]:
    """How a table that is measured now on this machine came about; `table` is ``quick`` or ``calibrated``."""
    return {"table": table, "measured": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), **_identity()}


def machine_name() -> str:
    """This machine as tables call it."""
    return f"{processor()}, {counted(cores(), 'core')}"


def _times(chosen: Chosen, state_dir: str | Path | None, *, measures: bool) -> KernelTimes:
    if isinstance(chosen, KernelTimes):
        return chosen
    name = str(chosen or os.environ.get(VARIABLE) or STORED)
    if name == SHIPPED:
        return KernelTimes.of_text(None)
    if name not in (STORED, MEASURE):
        check_file(name, MisuseError)
        return _table(Path(name))
    state = state_path(state_dir)
    if name == MEASURE:
        return _measured(state, anew=True)
    kept, note = _kept(state)
    if kept is not None:
        return kept
    if not measures:
        return KernelTimes.of_text(None, note)
    times = _measured(state, anew=False)
    return times if note is None else replace(times, note="; ".join(filter(None, (note, times.note))))


def _kept(state: Path) -> tuple[KernelTimes | None, str | None]:
    """The best table of this machine in a state directory, and what is to be said of one of another machine."""
    path, note = state / KERNELS, None
    if path.exists():
        calibrated = _table(path)
        if _is_of_this_machine(calibrated):
            return calibrated, None
        note = (
            f"{path} is of another machine ({calibrated.machine}), and is not used: lanner doctor --calibrate measures "
            "this one"
        )
    quick = _quick(state)
    return (None if quick is None else replace(quick, note=note)), note


def _quick(state: Path) -> KernelTimes | None:
    """What was measured in a second on this machine by this build; None if nothing was, or it cannot be read."""
    try:
        text = (state / QUICK).read_text(encoding="utf-8")
        quick = KernelTimes.of_text(text)
        own = json.loads(text)["origin"]["build"] == _identity()["build"]
    except (OSError, UnicodeDecodeError, LannerError, KeyError):
        # Measuring takes less time than asking anybody to remove it.
        return None
    return quick if own and _is_of_this_machine(quick) else None


def _table(path: Path) -> KernelTimes:
    try:
        return KernelTimes.of_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"the table of kernel times cannot be read ({why(error)})", where=str(path), fix="lanner doctor --calibrate"
        ) from None
    except MisuseError as error:
        raise MisuseError(error.what, where=str(path), fix=error.fix) from None


def _is_of_this_machine(times: KernelTimes) -> bool:
    """Whether a table is of a machine with this processor, its instructions and as many cores."""
    table = json.loads(times.text or "{}")
    told = table.get("origin")
    if told is None:
        # Tables of earlier versions have the machine's name alone.
        return times.machine == machine_name()
    own = _identity()
    return table.get("cores") == cores() and all(told[name] == own[name] for name in ("processor", "features"))


def _identity() -> dict[str, Any]:
    native = json.loads(_native.doctor())
    build = native["version"] if native["profile"] == "release" else f"{native['version']} {native['profile']}"
    features = sorted(name for name, present in native["features"].items() if present)
    return {"processor": processor(), "features": features, "build": build}


def _measured(state: Path, *, anew: bool) -> KernelTimes:
    """What this machine takes, measured and kept; `anew` even where another process or thread just did."""
    with _THREADS:
        if not anew and state in _NOT_KEPT:
            return _NOT_KEPT[state]
        try:
            state_directory(state)
            with _alone(state / LOCK):
                found = None if anew else _quick(state)
                if found is not None:
                    return found
                times = _measure(anyway=anew)
                if times.note is not None:
                    _NOT_KEPT[state] = times
                elif times.text is not None:
                    write_whole(state / QUICK, times.text, MisuseError)
                return times
        except (MisuseError, OSError) as error:
            reason = why(error) if isinstance(error, OSError) else error.what
            times = _measure(anyway=anew)
            note = f"what was measured is not kept in {state}: {reason}"
            _NOT_KEPT[state] = replace(times, note="; ".join(filter(None, (times.note, note))))
            return _NOT_KEPT[state]


def _measure(*, anyway: bool) -> KernelTimes:
    """What this machine takes; with a note the package's table where it cannot be measured, or is busy otherwise.

    With `anyway` a busy machine's times are given all the same.
    """
    from lanner.quick_times import quick_table

    before = Ticks.now()
    try:
        table = quick_table(origin("quick"), machine_name(), cores())
    except (LannerError, OSError) as error:
        return KernelTimes.of_text(None, f"this machine was not measured: {error}")
    after = Ticks.now()
    share = 0.0 if before is None or after is None else after.others(before)
    text = json.dumps(table, indent=1, sort_keys=True) + "\n"
    if share <= BUSY:
        return KernelTimes.of_text(text)
    busy = f"other programs used {share:.0%} of this machine's cores while it was measured"
    if anyway:
        return KernelTimes.of_text(text, f"{busy}, so these times are too long; measure again when it is idle")
    return KernelTimes.of_text(None, f"{busy}; estimate again when it is idle, for times of this machine")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from measuring: two at once would find this machine slow."""
    lock = _LOCKING
    if lock is None:
        yield
        return
    with path.open("w", encoding="utf-8") as file:
        lock(file.fileno())
        yield


def _locking() -> Callable[[int], None] | None:
    """What locks an open file until it is closed; None on systems without it."""
    try:
        import fcntl
    except ImportError:
        return None
    return lambda file: fcntl.flock(file, fcntl.LOCK_EX)


_LOCKING = _locking()

#: Keeps other threads of this process from measuring.
_THREADS = threading.Lock()

#: What was measured and is not kept, by state directory, for the next estimate of this process.
_NOT_KEPT: dict[Path, KernelTimes] = {}
