"""Pieces of a dataset: some rows that one worker predicts at once, and that are predicted again where it is lost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import InputError
from lanner.inputs import batch_of, check_range, fit_sources, read_sources
from lanner.manifest import Manifest

if TYPE_CHECKING:
    import ray
    import ray.data


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a block, which lies in Ray's object store.

    Attributes:
        block: A block of Ray Data, or an array of samples.
        rows: The rows of the block.
        places: The file of each row, if any, and its place there or in the dataset.
    """

    block: ray.ObjectRef[Any]
    rows: slice
    places: Sequence[tuple[str | None, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows of a dataset become samples.

    Attributes:
        column: The column of the samples: tensors, or paths of files that hold one sample each.
        csv_header: Whether the first row of a ``.csv`` file is a header; see `lanner.rows.read_rows`.
    """

    column: str = "x"
    csv_header: bool | None = None


#: Blocks that are arrays are samples already.
ARRAYS = Reading()


def pieces_of(dataset: ray.data.Dataset, size: int) -> Generator[Piece]:
    """A dataset in pieces of at most `size` rows, in its order, as its blocks are made. No row passes this process."""
    # Blocks come as they are made unless this is asked, and the place of a row is counted here.
    dataset.context.execution_options.preserve_order = True
    place = 0
    for bundle in dataset.iter_internal_ref_bundles():
        for entry, cut in zip(bundle.blocks, bundle.slices or (None,) * len(bundle.blocks), strict=True):
            begin, end = (0, entry.metadata.num_rows) if cut is None else (cut.start_offset, cut.end_offset)
            for start in range(begin, end or 0, size):
                rows = slice(start, min(start + size, end or 0))
                count = rows.stop - rows.start
                yield Piece(entry.ref, rows, [(None, place + number) for number in range(count)])
                place += count


def samples_in(
    block: object, piece_rows: slice, reading: Reading, manifest: Manifest, first: int
) -> NDArray[np.float32]:
    """The rows of a block as samples, checked against the model: shape (rows, *input shape).

    Args:
        block: A block of Ray Data, or an array of samples.
        piece_rows: Its rows.
        reading: How they become samples.
        manifest: The model.
        first: The place of the first row in the dataset, for errors.

    Raises:
        InputError: If a row does not fit; its place is named.
    """
    # A row of an array is a batch of one, which it stays where its inputs are encoded already.
    values = (
        block[piece_rows][:, np.newaxis]
        if isinstance(block, np.ndarray) and block.dtype.kind == "f"
        else block[piece_rows]
        if isinstance(block, np.ndarray)
        else _column(block, piece_rows, reading.column)
    )
    header = reading.csv_header
    return np.stack([_sample(value, manifest, f"row {row}", header) for row, value in enumerate(values, first)])


def _column(block: object, rows: slice, column: str) -> NDArray[Any]:
    from ray.data.block import BlockAccessor

    # A table of Arrow or of Pandas.
    accessor: Any = BlockAccessor.for_block(block)
    if column not in (names := accessor.schema().names):
        raise InputError(
            f"the dataset has no column {column!r} but {', '.join(names)}", fix="name the column of the samples"
        )
    values: NDArray[Any] = np.asarray(BlockAccessor.for_block(accessor.slice(rows.start, rows.stop)).to_numpy(column))
    return values


def _sample(value: object, manifest: Manifest, where: str, csv_header: bool | None) -> NDArray[np.float32]:
    if isinstance(value, str):
        samples = fit_sources(read_sources([Path(value)], csv_header), manifest)
        if len(samples) != 1:
            raise InputError(f"there are {len(samples)} samples in {value}", where=where, fix="give a row for each")
        return samples[0].values
    batch = batch_of(value, manifest.input, where)  # type: ignore[arg-type]
    check_range(batch, manifest.input, where)
    if len(batch) != 1:
        raise InputError(f"there are {len(batch)} samples in one row", where=where, fix="give a row for each")
    sample: NDArray[np.float32] = batch[0]
    return sample
