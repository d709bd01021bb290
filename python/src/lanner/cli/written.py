"""Files that a command writes: what is wrong with them is told before any work, and none is one that it reads."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lanner.errors import InputError, MisuseError
from lanner.files import check_target
from lanner.inputs import files_of


class Written(argparse.Action):
    """The action of an option that names a file to write.

    Args:
        arguments: As for any action.
        beside: Endings behind the file's name, of files that are written with it.
        options: As for any action.
    """

    def __init__(self, *arguments: Any, beside: Sequence[str] = (), **options: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(*arguments, **options)
        self._beside = beside

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: object, _name: str | None = None
    ) -> None:
        """Keep the file's name as the option's value, and what is written for the option."""
        setattr(namespace, self.dest, value)
        files = [Path(str(value)), *(Path(f"{value}{ending}") for ending in self._beside)]
        namespace.written = {**_written(namespace), self.dest: files}


def check_written(options: argparse.Namespace) -> None:
    """Check that every file can be written that the options name, and that the command loses nothing by it.

    Raises:
        MisuseError: If a folder does not exist, something else than a file has the name, or the command reads the file
            or writes it for another option, by whatever name.
    """
    targets = [target for files in _written(options).values() for target in files]
    for index, target in enumerate(targets):
        check_target(target, MisuseError)
        if any(_is_same(target, other) for other in targets[:index]):
            raise MisuseError("this file would be written twice", where=str(target), fix="give every file a name")
        sources = _read_by(options) if target.exists() else ()
        for source in sources:
            if _is_same(target, source):
                named = "" if target == source else f" as {source}"
                raise MisuseError(
                    f"this file is read{named}, and would be lost", where=str(target), fix="name another file to write"
                )


def _written(options: argparse.Namespace) -> dict[str, list[Path]]:
    """The files that are written, by the option that they are written for."""
    return getattr(options, "written", {})


def _read_by(options: argparse.Namespace) -> Iterator[Path]:
    """The files that a command reads, as far as its options name them."""
    for name, value in vars(options).items():
        given = value if isinstance(value, list) else [value]
        if name in _WORDS:
            yield from (Path(word) for words in given if words for word in (words, *words.split(",")))
        elif name not in _written(options):
            yield from (file for path in given if isinstance(path, Path) for file in _files_at(path))


def _files_at(path: Path) -> list[Path]:
    """The files that are read with a path: those in a folder, and a network's weights beside it."""
    if path.is_dir():
        try:
            return files_of([path])
        except InputError:
            # The command says so, if the folder is one of inputs.
            return []
    return [path, *_weights_beside(path)] if path.suffix == ".onnx" else [path]


def _weights_beside(path: Path) -> list[Path]:
    """The files in which an ONNX network keeps weights; none where it cannot be read, which the command says."""
    try:
        import onnx

        from lanner.onnx.external import external_files

        return [path.parent / name for name in external_files(onnx.load(str(path), load_external_data=False))]
    except Exception:  # noqa: BLE001 - whatever a damaged file leads to
        return []


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links of either kind, or would."""
    try:
        return path.samefile(other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


#: Options whose words may be the names of files.
_WORDS = ("network", "pin_model")
