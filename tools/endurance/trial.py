"""What a trial counted and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What a trial counts: numbers, or words where a number would not say it.
Count = int | float | str


@dataclass(frozen=True, slots=True)
class Check:
    """A claim that a run may refute.

    Attributes:
        claim: A sentence about the product.
        measured: What the run saw, with its unit.
        bound: What it had to be, with its unit.
        held: Whether it was.
    """

    claim: str
    measured: str
    bound: str
    held: bool


@dataclass(slots=True)
class Trial:
    """One run of a trial.

    Attributes:
        folder: A folder of its own, empty at first.
        scale: What part of the full counts is run: 1 is all, 0.01 a hundredth.
        counts: What was done, by name.
        checks: What was claimed, and whether it held.
        left_out: What could not be run here, and why.
        before: The document of the run before, if it is kept.
    """

    folder: Path
    scale: float = 1.0
    counts: dict[str, Count] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    before: Mapping[str, Any] | None = None

    def scaled(self, full: int, least: int = 1) -> int:
        """How many of `full` this run does, at least `least`."""
        return min(full, max(least, round(full * self.scale)))

    def check(self, claim: str, measured: object, bound: object, held: bool) -> None:
        """Note a claim, what was measured, what it had to be, and whether it held."""
        self.checks.append(Check(claim, str(measured), str(bound), held))

    def none(self, claim: str, found: list[str]) -> None:
        """Note the claim that there is none of something; the first that was found is told."""
        self.check(claim, f"{len(found)}: {found[0]}" if found else "0", "0", not found)

    def most(self, claim: str, measured: float, bound: float, unit: str) -> None:
        """Note the claim that a measure is at most a bound, both in `unit`."""
        self.check(claim, f"{measured:.4g} {unit}", f"at most {bound:.4g} {unit}", measured <= bound)

    def equal(self, claim: str, measured: object, expected: object) -> None:
        """Note the claim that a measure is what was expected."""
        self.check(claim, measured, expected, measured == expected)

    def chosen(self, parts: Sequence[str], variable: str) -> list[str]:
        """Which of the parts that a trial has are run: those that an environment variable names, or all.

        What the record of the run before has of the others is taken over. Claims and counts of a part begin with its
        name and a colon.

        Raises:
            ValueError: If the variable names another.
        """
        named = os.environ.get(variable, ",".join(parts)).split(",")
        if unknown := [name for name in named if name not in parts]:
            raise ValueError(f"{variable} names {unknown[0]!r}, and there are {', '.join(parts)}")
        for part in parts:
            if part not in named:
                self._take_over(part)
        return [part for part in parts if part in named]

    def _take_over(self, part: str) -> None:
        before = self.before
        checks = [] if before is None else [each for each in before["checks"] if each["claim"].startswith(f"{part}: ")]
        if before is None or not checks:
            self.check(f"{part}: is run", "never", "once", held=False)
            return
        found = {what: count for what, count in before["counts"].items() if what.startswith(f"{part}: ")}
        self.counts.update({f"{part}: at commit": before["commit"], **found})
        self.checks += [Check(**check) for check in checks]

    @property
    def verdict(self) -> str:
        """``held``, ``missed``, or ``left out`` where nothing could be checked."""
        if not self.checks:
            return "left out"
        return "held" if all(check.held for check in self.checks) else "missed"

    def document(self) -> dict[str, Any]:
        """What is saved of it."""
        checks = [
            {"claim": check.claim, "measured": check.measured, "bound": check.bound, "held": check.held}
            for check in self.checks
        ]
        told = {"counts": self.counts, "checks": checks, "left_out": self.left_out}
        return {"verdict": self.verdict, "scale": self.scale, **told}
