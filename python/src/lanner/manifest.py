"""The part of a compiled model that both parties may see."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.columns import StatedColumn
from lanner.errors import MisuseError, ModelError, native_errors
from lanner.features import Features
from lanner.files import check_file, why
from lanner.heads import is_map
from lanner.images import ImageDescription
from lanner.named import NamedInput, NamedOutput, holding
from lanner.prediction import Prediction
from lanner.texts import TextDescription

#: The most samples of a request.
MAX_SAMPLES = 1 << 24


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
        native: Rounds values as a prediction does; None where nothing is known but the shape.
        named: The file's inputs, of which a sample is made; empty where it has one, of numbers, that is the sample.
        text: How a text becomes these inputs, or None.
        columns: The names of a row's numbers, where its owner gives them and no tree reads them.
    """

    name: str
    shape: tuple[int, ...]
    low: float = float("-inf")
    high: float = float("inf")
    unit: float = 0.0
    features: Features | None = None
    native: _native.NativeInput | None = field(default=None, compare=False, repr=False)
    named: tuple[NamedInput, ...] = ()
    text: TextDescription | None = None
    columns: tuple[StatedColumn, ...] = ()

    @classmethod
    def from_document(cls, document: Mapping[str, Any], named: tuple[NamedInput, ...] = ()) -> InputDescription:
        """Read the input of a manifest's network.

        Raises:
            ModelError: Naming what no compiler wrote.
        """
        with native_errors():
            native = _native.NativeInput(json.dumps(document))
        name, shape, axis = str(document["name"]), tuple(document["shape"]), native.axis
        low, high, unit = (tuple(values) for values in native.limits())
        if axis is None:
            return cls(name, shape, low[0], high[0], unit[0], native=native, named=named)
        features = Features(axis, low, high, unit, native.preprocessed)
        return cls(name, shape, min(low), max(high), native.unit, features, native, named)

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and largest value accepted of each element: shapes that broadcast to `shape`."""
        if self.features is not None:
            return self.features.limits(len(self.shape))
        return np.array(self.low, np.float64), np.array(self.high, np.float64)

    def outside(self, values: NDArray[np.float32]) -> tuple[int, ...] | None:
        """The place of the first value, of samples of shape (n, *shape), that is not accepted; None if all are."""
        place = None if self.native is None else self.native.outside(values)
        return None if place is None else tuple(map(int, np.unravel_index(place, values.shape)))

    def clip(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Samples, shape (..., *shape), with every element brought into the range that is accepted of it."""
        low, high = self.limits()
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
        outputs: The file's outputs, of which a value is made; empty where it has one.
        title: What its owner calls it before people, or None.
        note: What its owner lets people know of the results, or None.
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
    outputs: tuple[NamedOutput, ...] = ()
    title: str | None = None
    note: str | None = None

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
                input=InputDescription.from_document(
                    document["network"]["input"], tuple(map(NamedInput.from_document, document.get("inputs") or ()))
                ),
                commitment=str(document["commitment"]),
                batch=_samples(document["plan"].get("samples", 1)),
                document=document,
                outputs=tuple(map(NamedOutput.from_document, document.get("outputs") or ())),
                title=_text_of(document.get("title")),
                note=_text_of(document.get("note")),
            )
            if (columns := document.get("columns")) is not None:
                stated = tuple(StatedColumn(str(name)) for name in columns)
                manifest = replace(manifest, input=replace(manifest.input, columns=stated))
            if (text := document.get("text")) is not None:
                described = TextDescription.from_document(text)
                manifest = replace(manifest, input=replace(manifest.input, text=described))
            if manifest.image is not None:
                manifest.image.check_shape(manifest.input.shape)
        except KeyError as error:
            reason = f"there is no {error}"
        except RecursionError:
            reason = "it is nested too deeply"
        except (MisuseError, ModelError) as error:
            reason = error.what
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            reason = str(error)
        else:
            return manifest
        raise ModelError(f"this is not a model's public half ({reason})", where=where, fix="export it again")

    def holding(self, tables: Mapping[str, NDArray[Any]], where: str | None = None) -> Manifest:
        """The same with the tables of embeddings that the owner publishes, by the names of their inputs.

        Raises:
            ModelError: If one is another table than the model's; `where` is named, or the input.
        """
        named = holding(self.input.named, tables, where)
        return replace(self, input=replace(self.input, named=named)) if named else self

    def cutting(self) -> Manifest:
        """The same, where texts that are too long are cut."""
        text = self.input.text
        return self if text is None else replace(self, input=replace(self.input, text=text.cutting()))

    def check_tables(self) -> None:
        """Check that the tables of embeddings are at hand, without which no input is encoded.

        Raises:
            MisuseError: Naming the first input whose table is not.
        """
        for entry in self.input.named:
            if entry.embeddings is not None:
                entry.embeddings.check_at_hand(f"model {self.name}, input {entry.name}")

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what the network gives for one sample, without a batch axis."""
        return tuple(self.document["network"]["nodes"][-1]["shape"])

    @property
    def is_map(self) -> bool:
        """Whether the network gives values at several places, such as pixels, of which no single label follows."""
        return is_map(self.output_shape)

    @property
    def places(self) -> tuple[int, ...] | None:
        """The shape of a map whose places have a label each; None of what is no such map."""
        return self.output_shape[:-1] if self.output == "label-map" else None

    def told(self, prediction: Prediction, row: NDArray[np.float32]) -> Prediction:
        """A prediction by this model with its values in the form that the file gives them.

        Args:
            prediction: The result as the network gives it.
            row: The network's input that it is of: of a text with a label at each token, the tokens are told, too.
        """
        if self.outputs:
            return prediction.of_outputs(self.outputs)
        if self.places is None:
            return prediction.of_map(self.output_shape) if self.is_map else prediction
        text = self.input.text
        if text is not None and math.prod(self.places) == text.length:
            prediction = replace(prediction, tokens=text.tokens(row, self.input.named))
        return replace(prediction, shape=list(self.places))

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


def _text_of(value: object) -> str | None:
    return None if value is None else str(value)


def _samples(value: object) -> int:
    """How many samples a request holds.

    Raises:
        ValueError: If it is no such number.
    """
    if type(value) is not int or not 1 <= value <= MAX_SAMPLES:
        raise ValueError(f"`samples` must be whole, from 1 to {MAX_SAMPLES}")
    return value


def _check_version(text: str, where: str) -> None:
    """Name another version before its members fail to parse."""
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        return
    if not isinstance(document, dict):
        return
    found, ours = document.get("format_version"), json.loads(_native.doctor())["format_version"]
    # Builds before those that know such members refuse files with them.
    if any(document.get(name) is not None for name in ("title", "note", "columns")):
        ours += 3
    elif document.get("text"):
        ours += 2
    elif document.get("inputs") or document.get("outputs"):
        ours += 1
    if found is not None and found != ours:
        raise ModelError(
            f"the public half has format version {found}; this build reads {ours}",
            where=where,
            fix="have the model compiled and exported again with this version",
        )
