"""The names of classes that a file's own operators give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

#: Tensors of a file that are known, by name.
Constants = Mapping[str, NDArray[np.generic]]


def class_names(nodes: Iterable[onnx.NodeProto], constants: Constants) -> tuple[str, ...] | None:
    """The names of the classes by index, as the operators on the way from the scores to an output tell them.

    Args:
        nodes: These operators, the first one first; those that name nothing are passed over.
        constants: The file's initializers.

    Returns:
        A name for each index, or None where no operator names the indices.
    """
    names: list[Any] | None = None
    for node in nodes:
        if node.op_type == "LabelEncoder":
            names = _encoded(node, names)
        elif node.op_type == "ArrayFeatureExtractor":
            held = constants.get(node.input[0])
            names = names if held is None else np.ravel(held).tolist()
        else:
            names = _attribute(node, *_LABELS) or names
    return None if not names else tuple(map(_text, names))


def _encoded(node: onnx.NodeProto, names: list[Any] | None) -> list[Any] | None:
    """What an encoder makes of the names so far, or of the indices."""
    keys, values = _attribute(node, *_KEYS), _attribute(node, *_VALUES)
    if keys is None or values is None or len(keys) != len(values):
        return names
    encoded = dict(zip(keys, values, strict=True))
    indices = list(range(len(keys))) if names is None else names
    return [encoded[name] for name in indices] if all(name in encoded for name in indices) else names


def _attribute(node: onnx.NodeProto, *names: str) -> list[Any] | None:
    """The first of these attributes that has elements."""
    held = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return next((list(held[name]) for name in names if name in held and len(held[name])), None)


def _text(name: object) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
_KEYS = ("keys_int64s", "keys_strings", "keys_floats")
_VALUES = ("values_strings", "values_int64s", "values_floats")
