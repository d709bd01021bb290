"""The part of a compiled model that both parties may see."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.errors import MisuseError, ModelError
from lanner.features import Features, finite, whole
from lanner.files import check_file, why
from lanner.heads import is_map
from lanner.images import ImageDescription

#: The most elements and axes of an input.
MAX_ELEMENTS = 1 << 24
MAX_AXES = 8

#: The largest absolute exponent of an input's unit, in eighths of a doubling.
MAX_GRID = 2048


@dataclass(frozen=True, slots=True)
class InputDescription:
    """What a model expects.

    Attributes:
        name: The input's name in the ONNX model.
        shape: The shape of one sample, without a batch axis.
        low: The smallest value of an element that is accepted.
        high: The largest.
        unit: The step of the fixed-point input; values are rounded to it before the range is checked.
        features: What is accepted of each feature, where they differ; low and high are then those of all together.
    """

    name: str
    shape: tuple[int, ...]
    low: float = float("-inf")
    high: float = float("inf")
    unit: float = 0.0
    features: Features | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> InputDescription:
        """Read the input of a manifest's network, within the bounds that the native side holds it to.

        Raises:
            ValueError: Naming what is beyond them.
        """
        name, scale = str(document["name"]), document["scale"]
        shape = tuple(whole(side, "the shape", 1, MAX_ELEMENTS) for side in document["shape"])
        if not 1 <= len(shape) <= MAX_AXES or math.prod(shape) > MAX_ELEMENTS:
            raise ValueError(f"an input has 1 to {MAX_AXES} axes and at most {MAX_ELEMENTS} elements")
        if "stated" in scale:
            stated = scale["stated"]
            low, high = (finite(stated[end], f"`{end}`", sys.float_info.max) for end in ("low", "high"))
            unit = (high - low) / whole(stated["steps"], "`steps`", 1, 2**32 - 1)
            if not low <= 0 <= high or not sys.float_info.min <= unit < math.inf:
                raise ValueError("the stated range is not usable")
            return cls(name, shape, low, high, unit)
        unit = 2.0 ** (whole(scale["grid"], "`grid`", -MAX_GRID, MAX_GRID) / 8)
        ends = (whole(document["low"], "`low`", -(2**63), 0), whole(document["high"], "`high`", 0, 2**63 - 1))
        if "features" not in document:
            return cls(name, shape, ends[0] * unit, ends[1] * unit, unit)
        features = Features.from_document(document["features"], unit, ends, shape)
        return cls(name, shape, min(features.low), max(features.high), unit, features)

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and largest value accepted of each element, and its unit: shapes that broadcast to `shape`."""
        if self.features is not None:
            return self.features.limits(len(self.shape))
        low, high, unit = (np.array(value, np.float64) for value in (self.low, self.high, self.unit))
        return low, high, unit

    def clip(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Samples, shape (..., *shape), with every element brought into the range that is accepted of it."""
        low, high, _ = self.limits()
        return np.clip(values, low.astype(np.float32), high.astype(np.float32))


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model's public half.

    Attributes:
        name: The model's name.
        mode: The mode it was compiled for.
        output: The output policy that its owner chose.
        classes: The names of the classes in the order of the outputs, or None.
        image: How a PNG or JPEG file becomes an input, or None.
        input: What an input looks like.
        commitment: The salted commitment that identifies the model, in hexadecimal.
        batch: How many samples a request holds.
        document: The whole document.
    """

    name: str
    mode: str
    output: str
    classes: tuple[str, ...] | None
    image: ImageDescription | None
    input: InputDescription
    commitment: str
    batch: int
    document: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str, where: str = "manifest") -> Manifest:
        """Read a manifest from its JSON text.

        Raises:
            ModelError: If the text is not a manifest; `where` is named.
        """
        try:
            document = json.loads(text)
            image = document.get("image")
            classes = document.get("classes")
            manifest = cls(
                name=str(document["name"]),
                mode=str(document["mode"]),
                output=str(document["output"]),
                classes=None if classes is None else tuple(map(str, classes)),
                image=None if image is None else ImageDescription.from_document(image),
                input=InputDescription.from_document(document["network"]["input"]),
                commitment=str(document["commitment"]),
                batch=whole(document["plan"].get("samples", 1), "`samples`", 1, MAX_ELEMENTS),
                document=document,
            )
            if manifest.image is not None:
                manifest.image.check_shape(manifest.input.shape)
        except KeyError as error:
            reason = f"there is no {error}"
        except RecursionError:
            reason = "it is nested too deeply"
        except MisuseError as error:
            reason = error.what
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            reason = str(error)
        else:
            return manifest
        raise ModelError(f"this is not a model's public half ({reason})", where=where, fix="export it again")

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what the network gives for one sample, without a batch axis."""
        return tuple(self.document["network"]["nodes"][-1]["shape"])

    @property
    def is_map(self) -> bool:
        """Whether the network gives values at several places, such as pixels, of which no single label follows."""
        return is_map(self.output_shape)

    @property
    def rounding(self) -> str | None:
        """How modes ``cheetah`` and ``tabula`` round: one of `lanner.options.ROUNDINGS`. None in other modes."""
        mode = self.document["plan"]["mode"]
        return str(mode[self.mode]) if isinstance(mode, Mapping) else None

    @property
    def is_exact(self) -> bool:
        """Whether every result is the fixed-point reference's."""
        return self.rounding in (None, "exact")

    @property
    def digits(self) -> int | None:
        """How many decimal digits of the probability the policy reveals, if any."""
        policy = self.document["policy"]
        return int(policy["probability"]["digits"]) if "probability" in policy else None

    @property
    def reveals_saturation(self) -> bool:
        """Whether a client learns beside the result if any activation reached an upper bound of the compiler's own."""
        return bool(self.document["plan"].get("saturation"))

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read the file that ``lanner export`` wrote.

        Raises:
            ModelError: If the file cannot be read as a manifest, or has another format version; both are named.
        """
        check_file(path, ModelError)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"this is not a model's public half ({why(error)})",
                where=str(path),
                fix="give a file written by `lanner export`",
            ) from None
        _check_version(text, str(path))
        return cls.parse(text, str(path))

    def class_name(self, label: int | None) -> str | None:
        """The name of a class index, where the model has names."""
        if label is None or self.classes is None or not 0 <= label < len(self.classes):
            return None
        return self.classes[label]


def _check_version(text: str, where: str) -> None:
    """Name another version before its members fail to parse."""
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        return
    found = document.get("format_version") if isinstance(document, dict) else None
    ours = json.loads(_native.doctor())["format_version"]
    if found is not None and found != ours:
        raise ModelError(
            f"the public half has format version {found}, this build reads {ours}",
            where=where,
            fix="have the model compiled and exported again with this version",
        )
