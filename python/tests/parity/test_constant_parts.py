"""Conditions, branches, loops and masks that are constants, beside onnxruntime and in secure runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import lanner
from helpers.models import make_model, random_weights
from lanner.errors import ModelError
from lanner.onnx import bodies, import_model
from lanner.onnx.masks import HIDDEN

TOKENS, WIDTH, CLASSES = 6, 4, 3
SAMPLES = 32
LOW = float(np.finfo(np.float32).min)
INF = math.inf

#: Of the largest output.
FLOAT_TOLERANCE = 1e-4
FIXED_TOLERANCE = 0.01

BOOL, FLOAT, INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64

Nodes = list[onnx.NodeProto]


def made(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - as ONNX
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def around(nodes: Nodes, opset: int = 17, tokens: int = TOKENS, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401
    """Nodes from ``a``, a product of rows (n, tokens, width), to ``t``, of the same shape, and scores of their mean."""
    weights: dict[str, NDArray[np.generic]] = {name: np.asarray(value) for name, value in constants.items()}
    weights |= random_weights(3, mix=(WIDTH, WIDTH), fc=(WIDTH, CLASSES))
    before = [made("MatMul", ["x", "mix"], "a")]
    axes = {"axes": [1]} if opset < 18 else {}
    if opset >= 18:
        weights["rows"] = np.array([1])
    mean = made("ReduceMean", ["t", *(["rows"] if opset >= 18 else [])], "mean", keepdims=0, **axes)
    model = make_model(
        [*before, *nodes, mean, made("MatMul", ["mean", "fc"], "y")], ["n", tokens, WIDTH], weights, opset=opset
    )
    model.ir_version = 10
    return model


def attending(mask: Nodes, tokens: int = TOKENS, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401 - arrays
    """Attention of ``a`` to itself whose scores ``s``, (n, tokens, tokens), a mask makes ``m`` of."""
    nodes = [
        made("Transpose", ["a"], "keys", perm=[0, 2, 1]),
        made("MatMul", ["a", "keys"], "s"),
        *mask,
        made("Softmax", ["m"], "p", axis=-1),
        made("MatMul", ["p", "a"], "t"),
    ]
    return around(nodes, tokens=tokens, **constants)


def samples(model: onnx.ModelProto, scale: float = 1.0, seed: int = 5) -> NDArray[np.float32]:
    shape = [side.dim_value for side in model.graph.input[0].type.tensor_type.shape.dim][1:]
    return (scale * np.random.default_rng(seed).standard_normal((SAMPLES, *shape))).astype(np.float32)


def expected(model: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.float32]:
    values = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    return np.asarray(values).reshape(len(x), -1)


def compiled(model: onnx.ModelProto, scale: float = 1.0) -> lanner.Model:
    """The model, compiled with as much room as inputs of a scale need, and compared with onnxruntime."""
    x = samples(model, scale)
    network = lanner.compile(model, x, mode="cheetah", output="logits")
    compare(network, model, x)
    return network


def compare(network: lanner.Model, model: onnx.ModelProto, x: NDArray[np.float32]) -> None:
    truth = expected(model, x)
    largest = float(np.abs(truth).max())
    assert np.abs(network.native.float(x) - truth).max() <= FLOAT_TOLERANCE * largest
    assert np.abs(network.predict_fixed(x) - truth).max() <= FIXED_TOLERANCE * largest


def causal(tokens: int = TOKENS) -> NDArray[np.bool_]:
    return np.tri(tokens, dtype=bool)


def masked(seen: NDArray[np.bool_], low: float) -> NDArray[np.float32]:
    return np.where(seen, 0.0, low).astype(np.float32)


PADDED = np.broadcast_to(np.arange(TOKENS) < 4, (TOKENS, TOKENS))
SCATTERED = np.array([[(3 * row + column) % 4 != 1 for column in range(TOKENS)] for row in range(TOKENS)])
ALIBI = np.array([[0.25 * (column - row) for column in range(TOKENS)] for row in range(TOKENS)])

MASKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "added -inf": lambda: attending([made("Add", ["s", "k"], "m")], k=masked(causal(), -INF)),
    "added lowest float": lambda: attending([made("Add", ["k", "s"], "m")], k=masked(causal(), LOW)),
    "subtracted ten thousand": lambda: attending([made("Sub", ["s", "k"], "m")], k=-masked(causal(), -1e4)),
    "in the place of scores": lambda: attending([made("Where", ["c", "s", "k"], "m")], c=causal(), k=np.float32(LOW)),
    "-inf in the place of scores": lambda: attending(
        [made("Where", ["c", "k", "s"], "m")], c=~causal()[np.newaxis], k=np.float32(-INF)
    ),
    "a product and a term": lambda: attending(
        [made("Mul", ["s", "c"], "kept"), made("Sub", ["kept", "k"], "m")],
        c=causal().astype(np.float32),
        k=-masked(causal(), -1e4),
    ),
    "scaled and moved behind": lambda: attending(
        [
            made("Add", ["s", "k"], "sum"),
            made("Mul", ["sum", "half"], "scaled"),
            made("Unsqueeze", ["scaled", "one"], "apart"),
            made("Add", ["apart", "bias"], "biased"),
            made("Squeeze", ["biased", "one"], "m"),
        ],
        k=masked(causal(), LOW),
        half=np.float32(0.5),
        bias=ALIBI.astype(np.float32),
        one=np.array([1]),
    ),
    "two masks and a bias": lambda: attending(
        [made("Add", ["s", "k"], "first"), made("Add", ["first", "l"], "m")],
        k=masked(causal(), -INF),
        l=masked(PADDED, -INF) + ALIBI.astype(np.float32),
    ),
    "padding": lambda: attending([made("Add", ["s", "k"], "m")], k=masked(PADDED, -INF)[:1]),
    "padding in front": lambda: attending([made("Add", ["s", "k"], "m")], k=masked(PADDED[:, ::-1], -1e4)),
    "any places": lambda: attending([made("Add", ["s", "k"], "m")], k=masked(SCATTERED, -INF)),
    "many rows": lambda: attending([made("Add", ["s", "k"], "m")], tokens=40, k=masked(causal(40), -INF)),
    "many rows of a window": lambda: attending(
        [made("Add", ["s", "k"], "m")], tokens=36, k=masked(causal(36) & ~np.tri(36, k=-9, dtype=bool), -INF)
    ),
    "a row of the lowest floats, which all weigh the same": lambda: attending(
        [made("Add", ["s", "k"], "m")], k=masked(causal() & (np.arange(TOKENS) != 0)[:, np.newaxis], LOW)
    ),
    "a row without scores, which all weigh the same": lambda: attending(
        [made("Where", ["c", "s", "k"], "m")],
        c=causal() & (np.arange(TOKENS) != 0)[:, np.newaxis],
        k=np.float32(-1e4),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_hides_scores(name: str) -> None:
    compiled(MASKS[name]())


@pytest.mark.parametrize("name", ["added -inf", "many rows"])
def test_a_mask_hides_scores_far_outside_of_calibration(name: str) -> None:
    """A hidden score may be far above those that are seen."""
    model = MASKS[name]()
    x = samples(model, 0.25)
    network = lanner.compile(model, x, mode="cheetah", output="logits", input_range=(-4.0, 4.0))
    far = samples(model, 0.5, seed=9)
    _, overflows = network.predict_integers(far)
    assert overflows == 0
    truth = expected(model, far)
    assert np.abs(network.predict_fixed(far) - truth).max() <= 2 * FIXED_TOLERANCE * np.abs(truth).max()


def test_a_mask_runs_privately() -> None:
    model = MASKS["added -inf"]()
    network = compiled(model)
    x = samples(model)
    (integers,), _ = network.predict_integers(x[:1])
    assert lanner.run(network, x[0]).integers == integers.tolist()


@pytest.mark.parametrize("name", MASKS)
def test_no_mask_is_left_to_widen_sums(name: str) -> None:
    tensors = import_model(MASKS[name]()).graph.tensors
    assert min(float(tensor.min()) for tensor in tensors.values()) >= -HIDDEN - np.abs(ALIBI).max()


def test_a_hidden_row_is_left_out_where_the_file_looks_for_nan() -> None:
    hidden = causal() & (np.arange(TOKENS) != 2)[:, np.newaxis]
    model = around(
        [
            made("Transpose", ["a"], "keys", perm=[0, 2, 1]),
            made("MatMul", ["a", "keys"], "s"),
            made("Add", ["s", "k"], "m"),
            made("Softmax", ["m"], "p", axis=-1),
            made("IsNaN", ["p"], "nan"),
            made("Where", ["nan", "zero", "p"], "q"),
            made("MatMul", ["q", "a"], "t"),
        ],
        k=masked(hidden, -INF),
        zero=np.float32(0.0),
    )
    compiled(model)


@pytest.mark.parametrize("operator", ["IsNaN", "IsInf"])
def test_values_are_finite(operator: str) -> None:
    nodes = [
        made(operator, ["a"], "odd"),
        made("Not", ["odd"], "well"),
        made("Where", ["well", "a", "zero"], "t"),
    ]
    model = around(nodes, opset=20, zero=np.float32(7.0))
    compiled(model)
    assert "MulConstant" not in import_model(model).graph.document


TRIANGLE = np.tri(TOKENS, WIDTH, dtype=bool)
CHECKED = np.indices((TOKENS, WIDTH)).sum(0) % 2 == 0

CHOICES: dict[str, Callable[[], onnx.ModelProto]] = {
    "a constant elsewhere": lambda: around(
        [made("Where", ["c", "a", "k"], "t")], c=TRIANGLE, k=np.arange(WIDTH, dtype=np.float32)
    ),
    "a constant where it holds": lambda: around(
        [made("Where", ["c", "k", "a"], "t")], c=TRIANGLE[np.newaxis], k=np.float32(0.5)
    ),
    "what is left out is infinite": lambda: around(
        [made("Log", ["l"], "k"), made("Where", ["c", "k", "a"], "t")],
        c=TRIANGLE,
        l=np.where(TRIANGLE, 2.0, 0.0).astype(np.float32),
    ),
    "all of one": lambda: around([made("Where", ["c", "k", "a"], "t")], c=~TRIANGLE & TRIANGLE, k=np.float32(-INF)),
    "rows of two secrets": lambda: around(
        [made("Relu", ["a"], "b"), made("Where", ["c", "a", "b"], "t")], c=np.arange(TOKENS)[:, np.newaxis] % 3 == 0
    ),
    "places of two secrets": lambda: around(
        [made("Relu", ["a"], "b"), made("Where", ["c", "a", "b"], "t")], c=TRIANGLE
    ),
    "a chessboard of two secrets": lambda: around(
        [made("Relu", ["a"], "b"), made("Where", ["c", "a", "b"], "t")], c=CHECKED
    ),
    "a condition that follows from shapes": lambda: around(
        [
            made("Shape", ["a"], "sides"),
            made("Gather", ["sides", "one"], "count"),
            made("Range", ["zero", "count", "one"], "places"),
            made("Unsqueeze", ["places", "one"], "column"),
            made("LessOrEqual", ["column", "three"], "early"),
            made("Equal", ["column", "five"], "last"),
            made("Or", ["early", "last"], "c"),
            made("Where", ["c", "a", "k"], "t"),
        ],
        zero=np.array(0),
        one=np.array(1),
        three=np.array(3),
        five=np.array(5),
        k=np.float32(1.0),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_constant_condition_chooses(name: str) -> None:
    model = CHOICES[name]()
    for node in model.graph.node:
        if node.op_type == "Unsqueeze":
            node.input[1] = "one_axis"
    if name == "a condition that follows from shapes":
        model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one_axis"))
    compiled(model)


def values(**kinds: int) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, None if kind == FLOAT else []) for name, kind in kinds.items()]


def branch(operator: str, inner: Nodes | None = None) -> onnx.GraphProto:
    """A body that reads ``a`` of the graph around it."""
    nodes = [*(inner or []), made(operator, ["a" if not inner else inner[-1].output[0]], f"{operator}_out")]
    return helper.make_graph(nodes, operator, [], values(**{f"{operator}_out": FLOAT}))


def conditional(condition: str = "c", **bodies: onnx.GraphProto) -> onnx.NodeProto:
    chosen = {"then_branch": branch("Relu"), "else_branch": branch("Neg"), **bodies}
    return helper.make_node("If", [condition], ["t"], name="t", **chosen)


@pytest.mark.parametrize("holds", [True, False])
def test_a_constant_condition_chooses_a_branch(*, holds: bool) -> None:
    compiled(around([conditional()], c=np.array(holds)))


def test_a_branch_in_a_branch_follows_from_shapes() -> None:
    asked = [
        made("Shape", ["a"], "sides"),
        made("Gather", ["sides", "one"], "count"),
        made("Greater", ["count", "one"], "c"),
    ]
    inner = conditional("inner", then_branch=branch("Abs"))
    inner.output[0] = "within"
    compiled(
        around(
            [*asked, conditional(then_branch=branch("Relu", [made("Not", ["c"], "inner"), inner]))],
            one=np.array(1),
        )
    )


def loop(count: str, condition: str, *, scan: bool = False, stops: bool = False) -> onnx.NodeProto:
    """Halves ``a`` and adds the number of the step, as often as it is told; or until the second step."""
    body = [
        made("Cast", ["at"], "step", to=FLOAT),
        made("Mul", ["state", "half"], "halved"),
        made("Add", ["halved", "step"], "next"),
        made("Less", ["at", "one"], "on") if stops else made("Identity", ["go"], "on"),
    ]
    outputs = values(on=BOOL, next=FLOAT)
    if scan:
        body.append(made("Identity", ["halved"], "row"))
        outputs += values(row=FLOAT)
    graph = helper.make_graph(body, "body", values(at=INT64, go=BOOL, state=FLOAT), outputs)
    return helper.make_node(
        "Loop", [count, condition, "a"], ["t", *(["rows"] if scan else [])], name="loop", body=graph
    )


@pytest.mark.parametrize(
    ("count", "condition", "stops"),
    [("three", "", False), ("three", "yes", True), ("", "yes", True), ("zero", "", False)],
)
def test_a_loop_of_a_known_number_of_steps_is_unrolled(count: str, condition: str, *, stops: bool) -> None:
    constants: dict[str, Any] = {"half": np.float32(0.5), "one": np.array(1), "zero": np.array(0)}
    model = around([loop(count, condition, stops=stops)], three=np.array(3), yes=np.array(True), **constants)
    compiled(model)


def test_what_a_loop_collects_is_stacked() -> None:
    node = loop("three", "", scan=True)
    node.output[0] = "last"
    sums = made("ReduceSum", ["rows", "first"], "t", keepdims=0)
    compiled(around([node, sums], three=np.array(3), half=np.float32(0.5), one=np.array(1), first=np.array([0])))


ATTENTION: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "causal": ({"is_causal": 1}, {}),
    "a scale": ({"scale": 0.3}, {}),
    "a mask of truths": ({}, {"k": SCATTERED}),
    "a mask of floats": ({}, {"k": masked(causal(), -INF) + ALIBI.astype(np.float32)}),
    "a causal mask beside another": ({"is_causal": 1}, {"k": PADDED}),
}


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_taken_apart(name: str, *, flat: bool) -> None:
    attributes, constants = ATTENTION[name]
    heads: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2} if flat else {}
    node = helper.make_node("Attention", ["q", "q", "a", *constants], ["t"], name="t", **attributes, **heads)
    nodes = [made("Mul", ["a", "two"], "q"), node]
    if not flat:
        nodes = [
            made("Reshape", ["a", "heads"], "apart"),
            made("Transpose", ["apart"], "v", perm=[0, 2, 1, 3]),
            made("Mul", ["v", "two"], "q"),
            helper.make_node("Attention", ["q", "q", "v", *constants], ["o"], name="o", **attributes),
            made("Transpose", ["o"], "back", perm=[0, 2, 1, 3]),
            made("Reshape", ["back", "whole"], "t"),
        ]
    sides: dict[str, Any] = {"heads": np.array([0, 0, 2, -1]), "whole": np.array([0, 0, -1])}
    compiled(around(nodes, opset=23, two=np.float32(2.0), **sides, **constants))


def test_heads_share_keys_and_values() -> None:
    nodes = [
        made("MatMul", ["a", "narrow"], "k"),
        helper.make_node("Attention", ["a", "k", "k"], ["t"], name="t", q_num_heads=2, kv_num_heads=1),
    ]
    narrow = random_weights(4, narrow=(WIDTH, WIDTH // 2))["narrow"]
    compiled(around(nodes, opset=23, narrow=narrow))


def column(*nodes: onnx.NodeProto, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401 - arrays
    """Nodes from ``a``, a product of rows (n, 5), to ``y``, which has no axis beside the batch."""
    weights = random_weights(6, mix=(WIDTH, 5))
    weights |= {name: np.asarray(value) for name, value in constants.items()}
    return make_model([made("MatMul", ["x", "mix"], "a"), *nodes], ["n", WIDTH], weights)


AXIS = {"axis": np.array([1])}
COLUMNS: dict[str, Callable[[], onnx.ModelProto]] = {
    "a sum": lambda: column(made("ReduceSum", ["a", "axis"], "y", keepdims=0), **AXIS),
    "a mean": lambda: column(made("ReduceMean", ["a"], "y", axes=[-1], keepdims=0)),
    "a maximum": lambda: column(made("ReduceMax", ["a"], "y", axes=[1], keepdims=0)),
    "an element": lambda: column(made("Gather", ["a", "k"], "y", axis=1), k=np.array(2)),
    "a product with a vector": lambda: column(made("MatMul", ["a", "k"], "y"), k=np.arange(5, dtype=np.float32)),
    "a squeezed column": lambda: column(
        made("ReduceSum", ["a", "axis"], "s"), made("Squeeze", ["s", "axis"], "y"), **AXIS
    ),
    "what is computed with columns": lambda: column(
        made("ReduceSum", ["a", "axis"], "s", keepdims=0),
        made("ReduceMax", ["a"], "m", axes=[1], keepdims=0),
        made("Mul", ["s", "k"], "scaled"),
        made("Add", ["scaled", "m"], "y"),
        k=np.float32(0.5),
        **AXIS,
    ),
    "columns that are joined": lambda: column(
        made("ReduceSum", ["a", "axis"], "s", keepdims=0),
        made("Relu", ["s"], "r"),
        made("Unsqueeze", ["s", "axis"], "left"),
        made("Unsqueeze", ["r", "axis"], "right"),
        made("Concat", ["left", "right"], "y", axis=1),
        **AXIS,
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_scores_without_an_axis_beside_the_batch(name: str) -> None:
    model = COLUMNS[name]()
    x = samples(model)
    network = lanner.compile(model, x, mode="cheetah", output="logits")
    compare(network, model, x)


def test_places_in_front_of_the_batch_are_gathered() -> None:
    places = np.array([[[0, 1], [5, 0]], [[-1, 3], [2, 2]]])
    nodes = [
        made("Transpose", ["a"], "turned", perm=[1, 2, 0]),
        made("GatherND", ["turned", "places"], "g"),
        made("Transpose", ["g"], "back", perm=[2, 0, 1]),
        made("Concat", ["back", "back"], "t", axis=2),
    ]
    compiled(around(nodes, places=places))


def places_of_samples(first: str) -> onnx.ModelProto:
    """Rows picked by their sample's number, which a file computes from the size of the batch, and their own."""
    order = np.array([2, 0, 5, 1, 4, 3, 0]).reshape(1, -1, 1)
    nodes = [
        made("Shape", ["a"], "size", start=0, end=1),
        made("Squeeze", ["size"], "count"),
        made("Range", ["zero", "count", "one"], "numbers"),
        made("Mul", ["numbers", "zero"], "first"),
        made("Reshape", [first, "column"], "samples"),
        made("Concat", ["size", "sides"], "shape", axis=0),
        made("Expand", ["samples", "shape"], "of_each"),
        made("Expand", ["order", "shape"], "rows"),
        made("Concat", ["of_each", "rows"], "places", axis=-1),
        made("GatherND", ["a", "places"], "t"),
    ]
    sides = np.array([order.size, 1])
    return around(nodes, zero=0, one=1, column=np.array([-1, 1, 1]), sides=sides, order=order)


def test_places_that_name_each_sample_itself_are_gathered() -> None:
    compiled(places_of_samples("numbers"))


def test_places_that_name_the_first_sample_for_all_are_refused() -> None:
    model = places_of_samples("first")
    with pytest.raises(lanner.ModelError, match="GatherND picks among the samples"):
        lanner.compile(model, samples(model), mode="cheetah", output="logits")


def pairs_of_samples(first: str, row: Nodes, of: str) -> onnx.ModelProto:
    """Rows picked from all samples' by number, as torch.onnx's first exporter writes ``a[samples, order]``."""
    nodes = [
        made("Shape", ["a"], "size", start=0, end=1),
        made("Squeeze", ["size"], "count"),
        made("Range", ["zero", "count", "one"], "numbers"),
        made("Mul", ["numbers", "zero"], "first"),
        made("Reshape", [first, "column"], "samples"),
        made("Shape", ["a"], "rows", start=1, end=2),
        made("Mul", ["samples", "rows"], "before"),
        made("Add", ["before", "order"], "places"),
        made("Flatten", ["a"], "flat", axis=2),
        made("Gather", ["flat", "places"], "picked", axis=0),
        *row,
        made("Shape", ["places"], "of_places"),
        made("Concat", ["of_places", "width"], "shape", axis=0),
        made("Reshape", [of, "shape"], "t"),
    ]
    order = np.array([[2, 0, 5, 1, 4, 3, 0]])
    whole = np.array([-1])
    return around(nodes, zero=0, one=1, column=np.array([-1, 1]), order=order, width=np.array([WIDTH]), whole=whole)


IN_A_ROW = made("Reshape", ["picked", "whole"], "row")


@pytest.mark.parametrize(("row", "of"), [([], "picked"), ([IN_A_ROW], "row")], ids=["as-they-are", "in-a-row"])
def test_places_in_all_samples_together_are_gathered(row: Nodes, of: str) -> None:
    compiled(pairs_of_samples("numbers", row, of))


def test_places_in_all_samples_together_that_name_the_first_for_all_are_refused() -> None:
    model = pairs_of_samples("first", [], "picked")
    with pytest.raises(lanner.ModelError, match="input 1 of Gather depends on the size of the batch"):
        lanner.compile(model, samples(model), mode="cheetah", output="logits")


def test_onnxruntime_computes_constants_that_the_reference_cannot() -> None:
    """NumPy chooses among 64 arrays at most."""
    table = np.random.default_rng(2).standard_normal((100, WIDTH)).astype(np.float32)
    places = np.random.default_rng(3).integers(0, 100, (TOKENS, WIDTH))
    compiled(
        around(
            [made("GatherElements", ["table", "places"], "k"), made("Add", ["a", "k"], "t")], table=table, places=places
        )
    )


REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "a row that sees nothing": (
        lambda: attending([made("Add", ["s", "k"], "m")], k=masked(causal() & ~np.eye(TOKENS, dtype=bool), -INF)),
        "a mask hides every position of a row, whose softmax is NaN",
    ),
    "a mask that no softmax reads": (
        lambda: around([made("Add", ["a", "k"], "t")], k=masked(TRIANGLE, -INF)),
        "a constant of Add puts -inf into a value, which only a Softmax may read",
    ),
    "lowest floats that no softmax reads": (
        lambda: around([made("Where", ["c", "a", "k"], "t")], c=TRIANGLE, k=np.float32(LOW)),
        "a constant of Where puts -3.40282e[+]38 into a value",
    ),
    "infinite terms": (
        lambda: around([made("Add", ["a", "k"], "t")], k=-masked(TRIANGLE, -INF)),
        "input 1 of Add holds NaN or infinite weights",
    ),
    "a logarithm of 0": (
        lambda: around([made("Log", ["l"], "k"), made("Mul", ["a", "k"], "t")], l=np.float32(0.0)),
        "constant Log cannot be computed: its result is not finite, and Mul t computes with it",
    ),
    "a secret number of steps": (
        lambda: around([loop("a", "")], half=np.float32(0.5), one=np.array(1)),
        "the number of steps of Loop depends on the input; only as many steps as a constant says",
    ),
    "a secret branch": (lambda: around([conditional("a")]), "the condition of If has shape"),
    "a branch that the size of the batch chooses": (
        lambda: around(
            [
                made("Shape", ["a"], "sides"),
                made("Gather", ["sides", "zero"], "count"),
                made("Greater", ["count", "one"], "c"),
                conditional(),
            ],
            zero=np.array(0),
            one=np.array(1),
        ),
        "the condition of If depends on the size of the batch",
    ),
    "a loop of too many steps": (
        lambda: around([loop("many", "")], many=np.array(10**6), half=np.float32(0.5), one=np.array(1)),
        "input 0 of Loop is 1000000 steps",
    ),
    "earlier keys": (
        lambda: around(
            [
                helper.make_node(
                    "Attention", ["a", "a", "a", "", "k", "k"], ["t"], name="t", q_num_heads=1, kv_num_heads=1
                )
            ],
            opset=23,
            k=np.zeros((1, 1, 2, WIDTH), np.float32),
        ),
        "past_key of Attention is keys or values of earlier calls",
    ),
    "capped scores": (
        lambda: around(
            [
                helper.make_node(
                    "Attention", ["a", "a", "a"], ["t"], name="t", q_num_heads=1, kv_num_heads=1, softcap=5.0
                )
            ],
            opset=23,
        ),
        "softcap of Attention caps scores",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name: str) -> None:
    make, sentence = REFUSED[name]
    with pytest.raises(ModelError, match=sentence):
        import_model(make())


def test_a_loop_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_STEPS", 20)
    model = around([loop("", "yes")], yes=np.array(True), half=np.float32(0.5), one=np.array(1))
    with pytest.raises(ModelError, match="the condition of Loop lets it run for more than 20 steps"):
        import_model(model)
