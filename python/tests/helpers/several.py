"""Models with several inputs and outputs, of integers and of masks, and arrays for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Arrays = dict[str, NDArray[Any]]


def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[str | int]]],
    outputs: dict[str, list[str | int]],
    **weights: NDArray[Any],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def expected(model: onnx.ModelProto, arrays: Arrays, output: str) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run([output], arrays)[0])


def drawn(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def first(arrays: Arrays, count: int = 1) -> Arrays:
    return {name: values[:count] for name, values in arrays.items()}


def off_by(found: object, exact: NDArray[np.float32]) -> float:
    return float(np.abs(np.ravel(np.asarray(found)) - exact.ravel()).max() / np.ptp(exact))


def two_floats() -> tuple[onnx.ModelProto, Arrays]:
    """A network of two inputs, one a hundred times as large as the other, and two outputs of different sizes."""
    nodes = [
        node("MatMul", ["a", "v"], "from a"),
        node("MatMul", ["b", "w"], "from b"),
        node("Add", ["from a", "from b"], "sum"),
        node("Relu", ["sum"], "relu"),
        node("MatMul", ["relu", "u"], "y"),
        node("Sigmoid", ["from a"], "z"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "a": (TensorProto.FLOAT, ["n", 6]),
        "b": (TensorProto.FLOAT, ["n", 2, 2]),
    }
    nodes[1] = node("MatMul", ["flat", "w"], "from b")
    nodes.insert(1, node("Flatten", ["b"], "flat"))
    weights: Arrays = {"v": drawn(6, 5), "w": drawn(4, 5) / 100, "u": 50 * drawn(5, 3)}
    model = model_of(nodes, inputs, {"y": ["n", 3], "z": ["n", 5]}, **weights)
    return model, {"a": drawn(40, 6, seed=1), "b": 100 * drawn(40, 2, 2, seed=2)}


def tokens(count: int, seed: int = 3) -> Arrays:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 7, count)
    mask = (np.arange(6) < lengths[:, np.newaxis]).astype(np.int64)
    return {
        "ids": rng.integers(0, 20, (count, 6)) * mask,
        "mask": mask,
        "kinds": rng.integers(0, 2, (count, 6)),
    }


def attention() -> onnx.ModelProto:
    """Embeddings of tokens and of two kinds, and attention that a private mask of -3.4e38 keeps from padding."""
    nodes = [
        node("Gather", ["words", "ids"], "word"),
        node("Gather", ["types", "kinds"], "kind"),
        node("Add", ["word", "kind"], "x"),
        node("Transpose", ["x"], "keys", perm=[0, 2, 1]),
        node("MatMul", ["x", "keys"], "scores"),
        node("Unsqueeze", ["mask", "one"], "wide"),
        node("Cast", ["wide"], "seen", to=TensorProto.BOOL),
        node("Where", ["seen", "zero", "least"], "added"),
        node("Add", ["scores", "added"], "masked"),
        node("Softmax", ["masked"], "weights", axis=-1),
        node("MatMul", ["weights", "x"], "mixed"),
        node("ReduceMean", ["mixed"], "mean", axes=[1], keepdims=0),
        node("MatMul", ["mean", "head"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        name: (TensorProto.INT64, ["batch", "sequence"]) for name in ("ids", "mask", "kinds")
    }
    return model_of(
        nodes,
        inputs,
        {"y": ["batch", 3]},
        words=drawn(20, 4),
        types=drawn(2, 4),
        head=drawn(4, 3),
        one=np.array([1]),
        zero=np.float32(0).reshape(1),
        least=np.full(1, np.finfo(np.float32).min, np.float32),
    )
