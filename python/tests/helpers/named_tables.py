"""A model of trees over a table whose columns have names, and tables of its kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from helpers.tree_models import Drawn

#: What the model's owner says of the columns.
STATED: list[dict[str, Any]] = [
    {"name": "age"},
    {"name": "smokes", "categories": ["no", "yes"], "missing": True},
    {"name": "height", "missing": True},
]

NAMES = tuple(column["name"] for column in STATED)

WORDS = ("no", "yes")


def samples(count: int = 64, seed: int = 1) -> NDArray[np.float32]:
    """Rows without a missing number, shape (count, 3)."""
    rng = np.random.default_rng(seed)
    columns = (rng.integers(18, 90, count), rng.integers(0, 2, count), np.round(rng.normal(170, 10, count), 1))
    return np.stack(columns, 1).astype(np.float32)


def tree_model() -> onnx.ModelProto:
    """Two trees of one score, which all three columns decide."""
    rng = np.random.default_rng(3)
    numbers = [np.unique(column) for column in samples().T]
    return Drawn(rng, numbers, trees=3, depth=3, modes=("BRANCH_LEQ",), missing=True).regressor(3)


def as_csv(rows: NDArray[np.float32], header: str = "age,smokes,height", words: bool = True) -> str:
    """Rows as people write them, with a header, words for categories, and nothing where a number is missing."""
    lines = [header] if header else []
    for row in rows:
        fields = ["" if np.isnan(value) else f"{value:g}" for value in row]
        if words and fields[1]:
            fields[1] = WORDS[int(row[1])]
        lines.append(",".join(fields))
    return "\n".join(lines) + "\n"
