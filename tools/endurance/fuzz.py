"""Fuzzes each target for ten minutes under the address sanitizer: no crash, no hang, no memory beyond 2 GB.

`fuzz/` has a target for each decoder of bytes from a peer or a file. Targets that the tables lack have not run yet.
Each starts from `fuzz/seeds` and the corpus of earlier runs, `fuzz/corpus`, packed in `fuzz/corpus.tar.xz`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from endurance.trial import Trial

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "fuzz"
BUILT = ROOT / "target" / "fuzz"
CORPUS, PACKED = FUZZ / "corpus", FUZZ / "corpus.tar.xz"

#: Seconds for each target; FUZZ_SECONDS says others, and FUZZ_TARGETS=NAME,... which targets are run.
SECONDS = 600

#: Seconds that one input may take, and megabytes that a target may have: an input that takes more is a finding.
SLOWEST, MEMORY = 25, 2048

#: The longest input, in bytes.
LONGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What became of a target.

    Attributes:
        name: The target's.
        executions: Inputs that were tried.
        corpus: Inputs that are kept, for each reaches something that the others do not.
        problem: What went wrong; empty if nothing did.
    """

    name: str
    executions: int
    corpus: int
    problem: str


def run(trial: Trial) -> None:
    """Build all targets, and run as many at once as there are cores."""
    cargo = shutil.which("cargo")
    if cargo is None or not _succeeds([cargo, "+nightly", "fuzz", "--version"]):
        trial.left_out.append(
            "fuzzing: it needs a nightly toolchain and cargo-fuzz (cargo install --locked cargo-fuzz)"
        )
        return
    build = [cargo, "+nightly", "fuzz", "build", "--fuzz-dir", str(FUZZ), "--target-dir", str(BUILT)]
    subprocess.run(build, check=True, cwd=ROOT)
    listed = [cargo, "+nightly", "fuzz", "list", "--fuzz-dir", str(FUZZ)]
    names = subprocess.run(listed, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
    chosen = trial.chosen(names, "FUZZ_TARGETS")
    _unpack()
    seconds = trial.scaled(int(os.environ.get("FUZZ_SECONDS", SECONDS)), 2)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        fuzzed = list(pool.map(lambda name: fuzz(name, seconds), chosen))
    _pack()
    for one in fuzzed:
        _tell(trial, one, seconds)


def _tell(trial: Trial, one: Fuzzed, seconds: int) -> None:
    trial.counts[f"{one.name}: seconds"] = seconds
    trial.counts[f"{one.name}: inputs tried"] = one.executions
    trial.counts[f"{one.name}: inputs kept"] = one.corpus
    trial.none(f"{one.name}: crashes, hangs, and inputs that take too much memory", [one.problem] * bool(one.problem))
    trial.check(f"{one.name}: inputs tried", one.executions, "more than 0", one.executions > 0)


def fuzz(name: str, seconds: int) -> Fuzzed:
    """Run a target that is built."""
    (program,) = BUILT.glob(f"*/release/{name}")
    corpus, artifacts = CORPUS / name, FUZZ / "artifacts" / name
    for folder in (corpus, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = [FUZZ / "seeds" / name] if (FUZZ / "seeds" / name).is_dir() else []
    limits = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MEMORY}",
        f"-max_len={LONGEST}",
        "-len_control=0",
    ]
    told = [f"-artifact_prefix={artifacts}/", "-print_final_stats=1"]
    ended = subprocess.run(
        [program, *limits, *told, corpus, *seeds],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=FUZZ,
        env={**os.environ, "ASAN_OPTIONS": "detect_odr_violation=0"},
    )
    tried = re.search(r"^stat::number_of_executed_units:\s*(\d+)", ended.stderr, re.MULTILINE)
    kept = sum(1 for _ in corpus.iterdir())
    return Fuzzed(name, int(tried[1]) if tried else 0, kept, "" if ended.returncode == 0 else _problem(ended.stderr))


def _problem(log: str) -> str:
    """The lines of a log that say what happened."""
    found = re.findall(r"^.*(?:panicked at|ERROR: |Test unit written to).*$", log, re.MULTILINE)
    # Where this checkout is concerns nobody.
    return ("; ".join(line.strip() for line in found)[:400] or log[-200:]).replace(f"{ROOT}/", "")


def _unpack() -> None:
    """Begin with the corpus of the repository where there is none of an earlier run here."""
    if PACKED.exists() and not CORPUS.exists():
        with tarfile.open(PACKED) as archive:
            archive.extractall(FUZZ, filter="data")


def _pack() -> None:
    """Pack the corpus for the repository, by names and bytes alone."""
    with tarfile.open(PACKED, "w:xz") as archive:
        for path in sorted(path for path in CORPUS.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(path.relative_to(FUZZ)))
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(entry, file)


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
