"""What a whole network computes, and what of a prediction's cost its layers and its activations have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lanner.model import Model
from lanner.prediction import Layer

#: How the names of linear layers' protocols begin.
LINEAR = ("gazelle", "falcon", "cheetah", "delphi")


def counted_work(model: Model, predictions: Sequence[Sequence[Layer]]) -> dict[str, dict[str, float]]:
    """The work of a whole network by kind, ``linear`` and ``activation``, and the ``count`` of its values in ``relu``.

    The kinds have ``count``, multiply-accumulates of all linear layers or values that activations and max-pools read;
    ``seconds``, the client's time in such steps, waits included, of both phases together, of the fastest prediction;
    and ``bytes``, both ways.

    Args:
        model: What was predicted with.
        predictions: The steps of each prediction.
    """
    fastest = min(predictions, key=lambda layers: sum(layer.seconds for layer in layers))
    counts = {"linear": multiply_accumulates(model.manifest.document["network"]), "activation": _values(model)}
    work = {kind: {"count": float(count), "seconds": 0.0, "bytes": 0.0} for kind, count in counts.items()}
    for layer in fastest:
        kind = "linear" if layer.protocol.split(".")[0] in LINEAR else "activation"
        work[kind]["seconds"] += layer.seconds
        work[kind]["bytes"] += layer.bytes
    return {**work, "relu": {"count": float(rectified(model.manifest.document["network"]))}}


def multiply_accumulates(network: dict[str, Any]) -> int:
    """Products of a weight and a value in all linear layers of a network's document; zeros of padding count."""
    nodes, places, total = network["nodes"], _places(network), 0
    for place in places:
        node = nodes[place]
        op, source = node["op"], node["inputs"][0]
        shape = (network["input"] if source == 0 else nodes[places[source - 1]])["shape"]
        if "Linear" in op:
            total += math.prod(node["shape"]) * math.prod(shape)
        elif "Conv2d" in op:
            conv = op["Conv2d"]
            total += math.prod(node["shape"]) * shape[0] // conv["groups"] * math.prod(conv["kernel"])
    return total


def rectified(network: dict[str, Any]) -> int:
    """Values that go through ReLU, with a bound or without, in a network's document."""
    nodes = [network["nodes"][place] for place in _places(network)]
    return sum(math.prod(node["shape"]) for node in nodes if node["op"] == "Relu")


def _places(network: dict[str, Any]) -> list[int]:
    """Where each node is among those that the document writes: a part that repeats is written once."""
    places, written = list[int](), 0
    for repeat in network.get("repeats", []):
        first, length = repeat["first"], len(repeat["advances"])
        places += [*range(written, first), *list(range(first, first + length)) * repeat["times"]]
        written = first + length
    return [*places, *range(written, len(network["nodes"]))]


def _values(model: Model) -> int:
    return sum(step.get("instances", 0) for step in model.report()["steps"])
