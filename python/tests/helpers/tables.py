"""Networks on scikit-learn's tables, whose columns differ in size: trained from seeds, with the scaler in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from helpers.models import make_model

#: Where a network has its scaler: as two operators, as a batch normalisation, or within the first layer's weights.
FORMS = ("scaler", "batch norm", "raw")

_TABLES = {"cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}


@dataclass(frozen=True)
class Table:
    """A split table of raw columns, and a network trained on them behind a scaler.

    Attributes:
        train: Shape (samples, columns).
        test: Likewise; never seen in training or calibration.
        weights: Of each layer, shape (inputs, outputs).
        biases: Of each layer, shape (outputs,).
        means: The scaler's, shape (columns,).
        deviations: The scaler's, shape (columns,).
    """

    train: NDArray[np.float32]
    test: NDArray[np.float32]
    weights: list[NDArray[np.float32]]
    biases: list[NDArray[np.float32]]
    means: NDArray[np.float32]
    deviations: NDArray[np.float32]


@cache
def trained(name: str) -> Table:
    """A network for ``cancer``, ``wine`` or ``iris``, with two scores or more, or a regression of ``diabetes``."""
    data = load_diabetes(scaled=False) if name == "diabetes" else _TABLES[name]()
    train, test, targets, _ = train_test_split(data.data, data.target, test_size=0.3, random_state=0)
    scaler = StandardScaler().fit(train)
    keywords = {"hidden_layer_sizes": (24, 12), "max_iter": 400, "random_state": 0}
    if name == "diabetes":
        network = MLPRegressor(alpha=30.0, **keywords).fit(scaler.transform(train), (targets - 150) / 77)
    else:
        network = MLPClassifier(**keywords).fit(scaler.transform(train), targets)
    weights, biases = list(network.coefs_), list(network.intercepts_)
    if name == "cancer":
        # One score for two classes: its negative is that of the other.
        weights[-1], biases[-1] = weights[-1] * [[-1, 1]], biases[-1] * [-1, 1]
    return Table(
        train.astype(np.float32),
        test.astype(np.float32),
        [weight.astype(np.float32) for weight in weights],
        [bias.astype(np.float32) for bias in biases],
        scaler.mean_.astype(np.float32),
        scaler.scale_.astype(np.float32),
    )


def table_model(table: Table, form: str) -> onnx.ModelProto:
    """The network with its scaler in one of `FORMS`."""
    weights = {f"w{layer}": weight for layer, weight in enumerate(table.weights)}
    weights |= {f"b{layer}": bias for layer, bias in enumerate(table.biases)}
    columns = len(table.means)
    nodes, last = [], "scaled"
    if form == "scaler":
        weights |= {"means": table.means, "deviations": table.deviations}
        nodes = [
            helper.make_node("Sub", ["x", "means"], ["centred"]),
            helper.make_node("Div", ["centred", "deviations"], [last]),
        ]
    elif form == "batch norm":
        ones, zeros = np.ones(columns, np.float32), np.zeros(columns, np.float32)
        weights |= {"gamma": ones, "beta": zeros, "mean": table.means, "var": table.deviations**2}
        nodes = [helper.make_node("BatchNormalization", ["x", "gamma", "beta", "mean", "var"], [last], epsilon=1e-12)]
    else:
        first = table.weights[0].astype(np.float64) / table.deviations[:, np.newaxis]
        weights["w0"] = first.astype(np.float32)
        weights["b0"] = (table.biases[0] - table.means @ first).astype(np.float32)
        last = "x"
    for layer in range(len(table.weights)):
        is_last = layer == len(table.weights) - 1
        result = "y" if is_last else f"sums{layer}"
        nodes.append(helper.make_node("Gemm", [last, f"w{layer}", f"b{layer}"], [result]))
        if not is_last:
            last = f"hidden{layer}"
            nodes.append(helper.make_node("Relu", [result], [last]))
    return make_model(nodes, ["n", columns], weights)
