"""What a prediction returns: the result that the output policy reveals, and its measured cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from html import escape
from typing import Any

from lanner.named import NamedOutput, split_outputs

#: The phases of a session, in order.
PHASES = ("setup", "offline", "online")


@dataclass(frozen=True, slots=True)
class Phase:
    """The client's cost in one phase.

    Attributes:
        seconds: Wall-clock time.
        bytes_sent: Bytes that the client sent on the transport; of requests that ran together, without what TLS adds.
        bytes_received: Bytes that the client received, likewise.
        rounds: Sends by the client that were followed by a wait; of a request for several samples the first one's.
    """

    seconds: float
    bytes_sent: int
    bytes_received: int
    rounds: int

    @property
    def bytes(self) -> int:
        """Bytes in both directions."""
        return self.bytes_sent + self.bytes_received

    def __add__(self, other: Phase) -> Phase:
        """The cost of one after the other."""
        return Phase(
            self.seconds + other.seconds,
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
            self.rounds + other.rounds,
        )


def phases_of(document: Mapping[str, Any]) -> dict[str, Phase]:
    """The phases of a document that has their costs by name."""
    return {name: Phase(**cost) for name, cost in document.items()}


@dataclass(frozen=True, slots=True)
class Layer:
    """The client's cost of one layer in one phase.

    Attributes:
        name: The layer.
        protocol: Its protocol.
        phase: ``offline`` or ``online``.
        seconds: Wall-clock time.
        computing: The part of it in which the client computed, and neither sent nor waited.
        bytes: Bytes in both directions.
        bytes_sent: The part of them that the client sent.
        rounds: Sends by the client that were followed by a wait.
    """

    name: str
    protocol: str
    phase: str
    seconds: float
    computing: float
    bytes: int
    bytes_sent: int
    rounds: int


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message as the server received it, after TLS.

    Attributes:
        length: Its bytes.
        beginning: The first of them, at most 64.
    """

    length: int
    beginning: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """One input's result.

    Attributes:
        input: The file that the input came from, or None.
        index: The input's place in its file or batch, from 0.
        label: The class index, where the policy reveals a label; of one logit 1 where it is above 0.
        class_name: The label's name, where the model names its classes.
        labels: The indices of the labels that hold, where labels do not exclude each other; of a map the label at each
            place, in row-major order.
        tokens: Of a text with a label at each token, the tokens, None where the text is filled up.
        class_names: Where the model names its classes, the names of `labels`, of `top`, or of the classes whose scores
            `logits` lists, in that order.
        probability: The label's probability, where the policy reveals it.
        digits: The decimal digits that the probability is rounded to; None where there is none.
        top: The best classes' indices, the best first, where the policy reveals them.
        logits: The network's outputs as real numbers, where the policy reveals them.
        values: The estimated quantities, of a model whose output is ``value``; of a model with several outputs those of
            each by its name.
        saturated: Whether any activation reached an upper bound of the compiler's own, where the model's owner compiled
            it with ``reveal_saturation``: where none did, no bound changed the result. Of `lanner.run`, and of the
            command, how many values were beyond what the network has room for, by layer, which only whoever has model
            and input may know. Else None: for a client it would reveal something of hidden values.
        shape: The shape of a map, such as (classes, height, width), whose elements `logits` or `values` lists in
            row-major order, or of the places that `labels` lists; of several outputs the shape of each by its name;
            None of what is no map.
        integers: Logits or values as the integers of the fixed-point reference, where the policy reveals them; no part
            of the document.
        mode: The mode that computed the prediction.
        model: The model's name, as it was asked for.
        phases: The cost of setup, offline and online.
        layers: The cost of each layer.
    """

    label: int | None
    probability: float | None
    logits: list[float] | None
    phases: dict[str, Phase]
    layers: list[Layer]
    mode: str
    model: str
    input: str | None = None
    index: int = 0
    class_name: str | None = None
    top: list[int] | None = None
    values: list[float] | dict[str, list[float]] | None = None
    labels: list[int] | None = None
    tokens: list[str | None] | None = None
    class_names: list[str] | None = None
    integers: list[int] | None = None
    shape: list[int] | dict[str, list[int]] | None = None
    saturated: dict[str, int] | bool | None = None
    digits: int | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Prediction:
        """Read one element of ``predictions``; members that are absent count as null."""
        return cls(
            label=document.get("label"),
            probability=document.get("probability"),
            logits=document.get("logits"),
            phases=phases_of(document["phases"]),
            layers=[Layer(**cost) for cost in document["layers"]],
            mode=document["mode"],
            model=document["model"],
            input=document.get("input"),
            index=document.get("index", 0),
            class_name=document.get("class_name"),
            top=document.get("top"),
            values=document.get("values"),
            labels=document.get("labels"),
            tokens=document.get("tokens"),
            class_names=document.get("class_names"),
            integers=document.get("integers"),
            shape=document.get("shape"),
            saturated=document.get("saturated"),
            digits=document.get("digits"),
        )

    def __repr__(self) -> str:
        told = (f"{name}={value if isinstance(value, Decimal) else repr(value)}" for name, value in self._result())
        return f"Prediction({', '.join(told)}; {self._cost()})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the result as a table, and what it cost."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in self._result()
        )
        return f"<table>{rows}</table><p>{escape(self._cost())}</p>"

    def _result(self) -> list[tuple[str, object]]:
        """What the policy reveals, by name; long lists cut short."""
        names = ("label", "class_name", "labels", "top", "class_names", "probability", "logits", "values", "saturated")
        found = {name: getattr(self, name) for name in names} | {"probability": self.rounded_probability}
        return [(name, _shortened(found[name])) for name in names if found[name] is not None]

    def _cost(self) -> str:
        """Time and traffic online, and in all."""
        online, everything = self.phases["online"], sum(self.phases.values(), start=Phase(0.0, 0, 0, 0))
        return (
            f"mode {self.mode}, online {online.seconds:.3g} s and {online.bytes / 1e6:.3g} MB, "
            f"in all {everything.seconds:.3g} s and {everything.bytes / 1e6:.3g} MB"
        )

    def document(self) -> dict[str, Any]:
        """The element of ``predictions`` that ``--json`` prints."""
        fields = asdict(self)
        return {name: fields[name] for name in _DOCUMENT_ORDER}

    @property
    def rounded_probability(self) -> Decimal | None:
        """The probability with all its `digits`, so that 1 reads as the rounded number that it is."""
        digits = 2 if self.digits is None else self.digits
        return None if self.probability is None else Decimal(f"{self.probability:.{digits}f}")

    @property
    def reals(self) -> list[float] | None:
        """Values or logits, whichever are revealed, of several outputs one after another."""
        if isinstance(self.values, dict):
            return [value for values in self.values.values() for value in values]
        return self.logits if self.values is None else self.values

    def placed(self, source: str | None, index: int) -> Prediction:
        """The same prediction, named after the file and the place that its input came from."""
        return replace(self, input=source, index=index)

    def of_map(self, shape: Sequence[int]) -> Prediction:
        """The same prediction of a model whose output is a map of this shape: its logits tell no single label."""
        if self.logits is not None:
            return replace(self, label=None, class_name=None, class_names=None, shape=list(shape))
        return self if self.values is None else replace(self, shape=list(shape))

    def of_outputs(self, outputs: Sequence[NamedOutput]) -> Prediction:
        """The same prediction of a model with several outputs, whose values follow one another."""
        if not isinstance(self.values, list):
            return self
        shapes = {output.name: list(output.shape) for output in outputs}
        return replace(self, values=split_outputs(outputs, self.values), shape=shapes)


def _shortened(value: object) -> object:
    """A value as it is shown in a line: of a long list the first numbers or names, and how many there are."""
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    if isinstance(value, list) and len(value) > _SHOWN:
        shown = ", ".join(each if isinstance(each, str) else f"{each:.4g}" for each in value[:_SHOWN])
        return f"[{shown}, ... {len(value)} {'names' if isinstance(value[0], str) else 'numbers'}]"
    return value


#: Numbers or names of a list that are shown.
_SHOWN = 6

_DOCUMENT_ORDER = (
    "input",
    "index",
    "label",
    "class_name",
    "labels",
    "tokens",
    "class_names",
    "probability",
    "digits",
    "top",
    "logits",
    "values",
    "saturated",
    "shape",
    "mode",
    "model",
    "phases",
    "layers",
)
