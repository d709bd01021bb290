"""The machine that figures were measured on."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanner import _native


def machine() -> dict[str, Any]:
    """Processor, cores, features that kernels use, system, version, and how busy it is now."""
    native = json.loads(_native.doctor())
    return {
        "processor": processor(),
        "cores": cores(),
        "features": sorted(name for name, present in native["features"].items() if present),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "lanner": native["version"],
        "load": busy_cores(),
    }


@dataclass(frozen=True, slots=True)
class Ticks:
    """What has been computed so far.

    Attributes:
        wall: Seconds of a clock.
        every: Seconds that all programs together computed, on all cores.
        own: The part of it that this process did.
        cores: The cores of the machine.
    """

    wall: float
    every: float
    own: float
    cores: int

    @classmethod
    def now(cls) -> Ticks | None:
        """As of now; None on systems that do not say what all programs compute."""
        try:
            words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
            user, nice, system, _, _, *others = map(int, words[1:9])
        except (OSError, ValueError):
            return None
        every = (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")
        return cls(time.monotonic(), every, time.process_time(), os.cpu_count() or 1)

    def others(self, before: Ticks) -> float:
        """The part of the machine's cores, from 0 to 1, that other programs had since."""
        room = (self.wall - before.wall) * self.cores
        return min(1.0, max(0.0, (self.every - before.every) - (self.own - before.own)) / room) if room > 0 else 0.0


def busy_cores() -> float:
    """Cores that other programs keep busy, over a quarter of a second; the load average where the system does not say.

    The load average also counts what ended a minute ago, such as the benchmark before this one.
    """
    before = Ticks.now()
    time.sleep(0.25)
    after = Ticks.now()
    if before is None or after is None:
        return os.getloadavg()[0]
    return after.others(before) * after.cores


@contextmanager
def one_core_each(other: int) -> Iterator[None]:
    """Keep this process and another of the same user on one core each, two different ones, within the block.

    Raises:
        OSError: If the system does not let them be kept there.
        ValueError: If this process has one core only.
    """
    every = sorted(os.sched_getaffinity(0))
    own, its, *_ = every if len(every) > 1 else (None, None)
    if own is None or its is None:
        raise ValueError("two processes cannot have a core each of one")
    try:
        _keep_on("self", {own})
        _keep_on(str(other), {its})
        yield
    finally:
        _keep_on("self", set(every))
        _keep_on(str(other), set(every))


def _keep_on(process: str, cores: set[int]) -> None:
    """Keep all threads of a process on some cores, those that they start too."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def forget_peaks(other: int) -> None:
    """Have Linux measure anew the most memory that this process and another of the same user have resident."""
    for pid in ("self", other):
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def peak_memory(other: int) -> int | None:
    """The most bytes that this process had resident, and those of another; None where the system does not tell."""
    total = 0
    for pid in ("self", other):
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            return None
        peak = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
        if peak is None:
            return None
        total += int(peak[1]) * 1024
    return total


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has at a moment, as Linux tells it.

    Attributes:
        resident: Bytes of memory that are its own: of files that are mapped and shared, none.
        descriptors: Open files and sockets.
        threads: Its threads.
        computed: Seconds that all of them have had of a core so far, in hundredths.
    """

    resident: int
    descriptors: int
    threads: int
    computed: float


def usage(pid: int) -> Usage:
    """What a process of the same user has now.

    Raises:
        OSError: If the system does not tell.
    """
    process = Path(f"/proc/{pid}")
    entries = (line.split(":", 1) for line in (process / "status").read_text(encoding="utf-8").splitlines())
    status = {name: value.strip() for name, value in entries}
    # The name in front may hold anything; behind it user and system time are the 12th and the 13th.
    times = (process / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[11:13]
    return Usage(
        resident=int(status["RssAnon"].removesuffix(" kB")) * 1024,
        descriptors=sum(1 for _ in (process / "fd").iterdir()),
        threads=int(status["Threads"]),
        computed=sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
    )


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
