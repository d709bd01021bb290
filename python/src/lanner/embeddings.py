"""Tables of embeddings that a model's owner publishes: a client looks its indices up by itself.

The table stands in the owner's model, and in a file beside the public half, which names its hash.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import InputError, MisuseError, ModelError
from lanner.files import check_file, why, write_whole

#: What the file of a public half's tables has behind its name.
SUFFIX = ".embeddings.npz"

#: The tables that nothing else reads, as `public_embeddings` of `lanner.compile` names them.
ALL = "all"


class Table:
    """The rows of a table, and where each of them is.

    Args:
        rows: Shape (rows, width).
    """

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self.rows = rows
        self._places: dict[float, dict[bytes, int]] = {}

    def places_of(self, rows: NDArray[np.float32], factor: float) -> NDArray[np.int64]:
        """For each row, shape (n, width), the first place in the table times a factor where it stands.

        Raises:
            InputError: If one stands nowhere.
        """
        if factor not in self._places:
            # Of equal rows the first counts.
            each = reversed(list(enumerate(self.rows * np.float32(factor))))
            self._places[factor] = {_digest(row): place for place, row in each}
        places = self._places[factor]
        found = [places.get(_digest(row), -1) for row in rows]
        if -1 in found:
            raise InputError(
                f"row {found.index(-1)} is none of the public table's", fix="give indices, which are looked up"
            )
        return np.array(found, np.int64)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """A table that is published for the indices of an input.

    Attributes:
        rows: Its rows, one for each choice.
        width: Elements of a row.
        sha256: The SHA-256 of its elements, row after row, as little-endian floats of 32 bits; in hexadecimal.
        table: The table itself, where it is at hand.
    """

    rows: int
    width: int
    sha256: str
    table: Table | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, table: NDArray[np.float32]) -> Embeddings:
        """Those of a table of shape (rows, width)."""
        held = np.ascontiguousarray(table, "<f4")
        rows, width = map(int, held.shape)
        return cls(rows, width, hashlib.sha256(held.tobytes()).hexdigest(), Table(held))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Embeddings:
        """Read that of one of a manifest's ``inputs``."""
        return cls(int(document["rows"]), int(document["width"]), str(document["sha256"]))

    def document(self) -> dict[str, Any]:
        """The member of one of a manifest's ``inputs``."""
        return {"rows": self.rows, "width": self.width, "sha256": self.sha256}

    def holding(self, table: NDArray[Any], where: str) -> Embeddings:
        """The same with its table.

        Raises:
            ModelError: If this is another table; `where` is named.
        """
        found = of_floats(table)
        if found is None or found != self:
            told = "no table of floats" if found is None else f"one of {found.rows} x {found.width}, {found.sha256}"
            raise ModelError(
                f"the table is {told}, and the model's is {self.rows} x {self.width}, {self.sha256}",
                where=where,
                fix="use the file that was exported with the model's public half",
            )
        return found

    def look_up(self, places: NDArray[np.float32], where: str) -> NDArray[np.float32]:
        """The rows of whole numbers from 0 on: shape (*places.shape, width).

        Raises:
            MisuseError: If the table is not at hand.
        """
        found: NDArray[np.float32] = self._at_hand(where).rows[places.astype(np.int64)]
        return found

    def find(self, rows: NDArray[np.float32], factor: float, where: str) -> NDArray[np.int64]:
        """Where rows of shape (n, width) stand in the table times a factor.

        Raises:
            MisuseError: If the table is not at hand.
            InputError: If one stands nowhere.
        """
        return self._at_hand(where).places_of(rows, factor)

    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number of the table, 0 between them."""
        rows = self._at_hand("the model").rows
        return float(rows.min(initial=0)), float(rows.max(initial=0))

    def check_at_hand(self, where: str) -> None:
        """Check that the table is at hand.

        Raises:
            MisuseError: If it is not.
        """
        self._at_hand(where)

    def _at_hand(self, where: str) -> Table:
        if self.table is None:
            raise MisuseError(
                f"this is looked up in a public table of {self.rows} x {self.width} numbers, which is not here",
                where=where,
                fix=f"get MODEL.public and MODEL.public{SUFFIX} from the model's owner, put both in one folder, and "
                "give --pin-model MODEL.public, or in Python the second as embeddings=",
            )
        return self.table


def of_floats(table: NDArray[Any]) -> Embeddings | None:
    """Those of a table of finite floats of 32 bits; None of anything else."""
    if table.ndim != 2 or table.dtype.newbyteorder("=") != np.float32 or not table.size:
        return None
    return Embeddings.of(table) if np.isfinite(table).all() else None


def beside(public: str | Path) -> Path:
    """Where the tables of a public half are."""
    return Path(f"{public}{SUFFIX}")


def write_tables(path: Path, tables: Mapping[str, NDArray[np.float32]]) -> None:
    """Write tables, by the names of their inputs; the same tables always make the same file.

    Raises:
        ModelError: If it cannot be written.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, table in tables.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(table, "<f4"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    write_whole(path, buffer.getvalue(), ModelError)


def read_tables(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read what `write_tables` wrote.

    Raises:
        ModelError: If it cannot be read.
    """
    check_file(path, ModelError)
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("it is one array")  # noqa: TRY004, TRY301 - told as what NumPy refuses is
        with loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        raise ModelError(
            f"these are no tables of embeddings ({why(error)})",
            where=str(path),
            fix="use the file that was exported with the model's public half",
        ) from None


def _digest(row: NDArray[np.float32]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(row, "<f4").tobytes(), digest_size=16).digest()
