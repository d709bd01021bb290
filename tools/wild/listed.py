"""The list of models, models.toml: what is downloaded, with which options it is compiled, and what it reads."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Where a package comes from.
REGISTRIES = ("pypi", "npm")

#: The options of `lanner compile` that `lanner inspect` takes, too: they say what the file leaves open.
_OF_THE_FILE = ("--shape", "--fix", "--output-name", "--output")


class ListError(ValueError):
    """An entry of the list is not what it must be."""


@dataclass(frozen=True, slots=True)
class Input:
    """What is drawn for one input of a model.

    Attributes:
        kind: The kind of `samples.KINDS`.
        shape: The shape of one sample, without the batch.
        axis: The axis along which the file has its samples.
        settings: What the kind is told.
    """

    kind: str
    shape: tuple[int, ...]
    axis: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of a package.

    Attributes:
        name: A short name, by which ONLY= runs it.
        package: The package's name in its registry.
        version: Its version.
        registry: One of `REGISTRIES`.
        file: The model's path in the package.
        task: What the model does.
        options: What a user must give `lanner compile` beside the file and the samples.
        inputs: What is drawn, by the input's name.
        calibration: How many samples are drawn for calibration.
    """

    name: str
    package: str
    version: str
    registry: str
    file: str
    task: str
    options: tuple[str, ...]
    inputs: Mapping[str, Input]
    calibration: int

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that are asked for; none where the file's only or first one is."""
        return tuple(self._values("--output-name")[-1].split(",")) if self._values("--output-name") else ()

    @property
    def fixed(self) -> dict[str, float]:
        """The inputs that are made constants, with their numbers."""
        pairs = (value.split("=", 1) for value in self._values("--fix"))
        return {name: float(number) for name, number in pairs}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The inputs whose shapes the options name, with these."""
        pairs = (each.split("=", 1) for value in self._values("--shape") for each in value.split(","))
        return {name: tuple(map(int, sizes.split("x"))) for name, sizes in pairs if "x" in sizes}

    @property
    def inspected(self) -> list[str]:
        """The options that `lanner inspect` takes."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return [each for pair in pairs if pair[0] in _OF_THE_FILE for each in pair]

    def _values(self, option: str) -> list[str]:
        return [value for name, value in zip(self.options, self.options[1:], strict=False) if name == option]


def read(path: Path) -> list[Listed]:
    """The models of a list.

    Raises:
        ListError: If a name is listed twice, or an entry lacks something or has what nobody reads.
    """
    models = [_listed(entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("model", [])]
    names = [model.name for model in models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ListError(f"{min(twice)} is listed twice")
    return models


def choose(models: Sequence[Listed], only: str | None) -> list[Listed]:
    """Those of a list that are named, with commas between them; all where none is.

    Raises:
        ListError: If there is none of a name.
    """
    if not only:
        return list(models)
    by_name = {model.name: model for model in models}
    if unknown := [name for name in only.split(",") if name not in by_name]:
        raise ListError(f"there is no model {unknown[0]}; there are {', '.join(by_name)}")
    return [by_name[name] for name in only.split(",")]


def _listed(entry: Mapping[str, Any]) -> Listed:
    needed, known = {"name", "package", "version", "file", "task", "inputs"}, {"registry", "options", "calibration"}
    name = entry.get("name", "an entry without a name")
    if missing := needed - entry.keys():
        raise ListError(f"{name} lacks {min(missing)}")
    if more := entry.keys() - needed - known:
        raise ListError(f"{name} has {min(more)}, which nobody reads")
    registry = entry.get("registry", "pypi")
    if registry not in REGISTRIES:
        raise ListError(f"{name} has the registry {registry}; there are {', '.join(REGISTRIES)}")
    inputs = {each: _input(f"{name}, {each}", told) for each, told in entry["inputs"].items()}
    return Listed(
        name=name,
        package=entry["package"],
        version=entry["version"],
        registry=registry,
        file=entry["file"],
        task=entry["task"],
        options=tuple(entry.get("options", "").split()),
        inputs=inputs,
        calibration=entry.get("calibration", 32),
    )


def _input(where: str, told: Mapping[str, Any]) -> Input:
    if missing := {"kind", "shape"} - told.keys():
        raise ListError(f"{where} lacks {min(missing)}")
    settings = {key: value for key, value in told.items() if key not in ("kind", "shape", "axis")}
    return Input(told["kind"], tuple(told["shape"]), told.get("axis", 0), settings)
