"""Recurrent layers in every form that exporters write, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import lanner
from lanner.errors import ModelError

STEPS, INPUTS, HIDDEN, SAMPLES = 3, 4, 5, 6

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

FLOAT_TOLERANCE = 1e-4

#: Of the largest output: activations of 8 bits, rounded several times a step.
FIXED_TOLERANCE = 0.05

#: How the last steps of all outputs become rows: of both directions, as torch exports it.
ROWS = (
    helper.make_node("Transpose", ["Y"], ["t"], perm=[0, 2, 1, 3]),
    helper.make_node("Reshape", ["t", "merged"], ["r"]),
    helper.make_node("Transpose", ["r"], ["s"], perm=[1, 0, 2]),
    helper.make_node("Gather", ["s", "last"], ["y"], axis=1),
)

CONSTANTS = {"merged": np.array([0, 0, -1]), "last": np.array(-1), "first": np.array([0]), "second": np.array([1])}


def layer(operator: str, *, inputs: int = INPUTS, reads: str = "steps", prefix: str = "", **given: Any) -> Any:  # noqa: ANN401
    """A layer's node with outputs Y, Y_h and Y_c, and its weights; keywords are attributes, or inputs if arrays."""
    rng = np.random.default_rng(7)
    directions = 2 if given.get("direction") == "bidirectional" else 1
    gates = GATES[operator]
    weights = {
        "W": rng.standard_normal((directions, gates * HIDDEN, inputs)) / 2,
        "R": rng.standard_normal((directions, gates * HIDDEN, HIDDEN)) / 2,
        "B": rng.standard_normal((directions, 2 * gates * HIDDEN)) / 4,
    }
    weights |= {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    attributes = {name: value for name, value in given.items() if not isinstance(value, np.ndarray)}
    places = ("W", "R", "B", "lengths", "h", "c", "P")[: 7 if operator == "LSTM" else 5]
    names = [reads, *(f"{prefix}{name}" if name in weights else "" for name in places)]
    outputs = [f"{prefix}{name}" for name in ("Y", "Y_h", "Y_c")[: 3 if operator == "LSTM" else 2]]
    node = helper.make_node(operator, names, outputs, name=f"{prefix}layer", hidden_size=HIDDEN, **attributes)
    kept = {
        f"{prefix}{name}": value.astype(np.int32 if name == "lengths" else np.float32)
        for name, value in weights.items()
    }
    return node, kept


def model_of(
    nodes: Sequence[onnx.NodeProto], constants: dict[str, NDArray[Any]], shape: Sequence[Any]
) -> onnx.ModelProto:
    """A network with input x and output y."""
    entry = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    leave = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    leave.type.tensor_type.shape.SetInParent()
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "recurrent", [entry], [leave], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def one_layer(operator: str, ending: Sequence[onnx.NodeProto] = ROWS, **given: Any) -> onnx.ModelProto:  # noqa: ANN401
    """A layer on samples that come first, and what makes rows of its outputs."""
    node, weights = layer(operator, **given)
    turn = helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])
    return model_of([turn, node, *ending], {**CONSTANTS, **weights}, ["n", STEPS, INPUTS])


def check(proto: onnx.ModelProto, *, steps_first: bool = False) -> lanner.Model:
    """Compare both executors with onnxruntime, which takes steps first where the model does."""
    x = np.random.default_rng(3).standard_normal((SAMPLES, STEPS, INPUTS)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    given = x.swapaxes(0, 1) if steps_first else x
    if session.get_inputs()[0].shape[1 if steps_first else 0] == 1:
        expected = np.concatenate(
            [session.run(None, {"x": sample})[0] for sample in np.split(given, SAMPLES, int(steps_first))]
        )
    else:
        expected = session.run(None, {"x": given})[0]
    model = lanner.compile(proto, x, output="logits", mode="cheetah", allow_imprecise=True)
    computed, fixed = model.native.float(x), model.predict_fixed(x)
    largest = float(np.abs(expected).max())
    assert np.allclose(computed, expected.reshape(SAMPLES, -1), rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE * largest)
    assert np.abs(fixed - computed).max() <= FIXED_TOLERANCE * largest
    return model


def states(directions: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(5).standard_normal((directions, 1, HIDDEN)).repeat(SAMPLES, 1)


def peepholes() -> NDArray[np.float64]:
    return np.random.default_rng(6).standard_normal((1, 3 * HIDDEN))


FORMS: dict[str, dict[str, Any]] = {
    "lstm": {"operator": "LSTM"},
    "lstm in reverse": {"operator": "LSTM", "direction": "reverse"},
    "lstm in both directions": {"operator": "LSTM", "direction": "bidirectional"},
    "lstm from a state": {"operator": "LSTM", "h": states(), "c": states()},
    "lstm from states": {"operator": "LSTM", "direction": "bidirectional", "h": states(2), "c": states(2)},
    "lstm that looks at its cell": {"operator": "LSTM", "P": peepholes()},
    "lstm that looks at its cell from a state": {"operator": "LSTM", "P": peepholes(), "c": states()},
    "lstm that forgets what it does not take": {"operator": "LSTM", "input_forget": 1},
    "lstm that is clipped": {"operator": "LSTM", "clip": 0.5},
    "lstm of all steps": {"operator": "LSTM", "lengths": np.full(SAMPLES, STEPS)},
    "lstm of other gates": {"operator": "LSTM", "activations": ["HardSigmoid", "Relu", "Softsign"]},
    "gru": {"operator": "GRU"},
    "gru that resets behind its weights": {"operator": "GRU", "linear_before_reset": 1},
    "gru in both directions": {"operator": "GRU", "linear_before_reset": 1, "direction": "bidirectional"},
    "gru from a state": {"operator": "GRU", "h": states()},
    "gru that resets a state behind its weights": {"operator": "GRU", "linear_before_reset": 1, "h": states()},
    "gru that is clipped": {"operator": "GRU", "clip": 0.5},
    "gru of other gates": {
        "operator": "GRU",
        "activations": ["HardSigmoid", "LeakyRelu"],
        "activation_alpha": [0.25, 0.125],
    },
    "rnn": {"operator": "RNN"},
    "rnn from a state": {"operator": "RNN", "h": states()},
    "rnn that is clipped": {"operator": "RNN", "clip": 0.5},
    "rnn in both directions": {"operator": "RNN", "direction": "bidirectional"},
    "rnn of relu": {"operator": "RNN", "activations": ["Relu"]},
    "rnn of elu": {"operator": "RNN", "activations": ["Elu"], "activation_alpha": [0.5]},
    "rnn of thresholds": {"operator": "RNN", "activations": ["ThresholdedRelu"], "activation_alpha": [0.3]},
    "rnn of softplus": {"operator": "RNN", "activations": ["Softplus"]},
    "rnn of scaled tanh": {
        "operator": "RNN",
        "activations": ["ScaledTanh"],
        "activation_alpha": [1.5],
        "activation_beta": [0.5],
    },
    "rnn of lines": {
        "operator": "RNN",
        "activations": ["Affine"],
        "activation_alpha": [0.5],
        "activation_beta": [0.25],
    },
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_layer_computes_what_onnxruntime_does(name: str) -> None:
    check(one_layer(**FORMS[name]))


def squeezed(output: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Squeeze", [output, "first"], ["y"])]


@pytest.mark.parametrize("output", ["Y_h", "Y_c"])
def test_last_states_come_as_keras_takes_them(output: str) -> None:
    check(one_layer("LSTM", squeezed(output)))


def test_all_states_may_be_the_scores() -> None:
    ending = [
        helper.make_node("Squeeze", ["Y", "second"], ["s"]),
        helper.make_node("Transpose", ["s"], ["y"], perm=[1, 0, 2]),
    ]
    check(one_layer("GRU", ending))


def test_layers_stand_on_each_other_and_share_their_weights_over_steps() -> None:
    first, of_first = layer("LSTM")
    second, of_second = layer("GRU", inputs=HIDDEN, reads="s", prefix="upper_")
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        first,
        helper.make_node("Squeeze", ["Y", "second"], ["s"]),
        second,
        helper.make_node("Squeeze", ["upper_Y_h", "first"], ["y"]),
    ]
    check(model_of(nodes, {**CONSTANTS, **of_first, **of_second}, ["n", STEPS, INPUTS]))


def test_states_that_follow_from_the_batch_are_constants() -> None:
    node, weights = layer("LSTM", h=states(), c=states())
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["samples"]),
        helper.make_node("Concat", ["one", "samples", "units"], ["sides"], axis=0),
        helper.make_node("Expand", ["nought", "sides"], ["h"]),
        helper.make_node("Identity", ["h"], ["c"]),
        node,
        *squeezed("Y_h"),
    ]
    sizes = {"zero": [0], "one": [1], "units": [HIDDEN]}
    constants = {name: np.array(value) for name, value in sizes.items()} | {"nought": np.array(0, np.float32)}
    kept = {name: value for name, value in weights.items() if name not in ("h", "c")}
    check(model_of(nodes, {**CONSTANTS, **constants, **kept}, ["n", STEPS, INPUTS]))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences_that_all_end_early_leave_zeros(direction: str) -> None:
    lengths = np.full(SAMPLES, STEPS - 1)
    check(one_layer("GRU", lengths=lengths, direction=direction))
    check(
        one_layer(
            "LSTM", squeezed("Y_c") if direction != "bidirectional" else ROWS, lengths=lengths, direction=direction
        )
    )


def test_a_state_may_follow_from_the_input() -> None:
    check(brought_state())


@pytest.mark.parametrize("operator", GATES)
def test_states_may_be_inputs_and_outputs(operator: str) -> None:
    """As of a network that is called again for each step of a stream."""
    node, weights = layer(operator, h=np.zeros(1), c=np.zeros(1))
    carried = ("h", "c")[: 2 if operator == "LSTM" else 1]
    floats = onnx.TensorProto.FLOAT
    kept = {name: value for name, value in weights.items() if name not in ("h", "c")}
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]), node],
        "net",
        [
            helper.make_tensor_value_info("x", floats, ["n", 1, INPUTS]),
            *(helper.make_tensor_value_info(name, floats, [1, "n", HIDDEN]) for name in carried),
        ],
        [helper.make_tensor_value_info(f"Y_{name}", floats, [1, "n", HIDDEN]) for name in carried],
        [numpy_helper.from_array(value, name) for name, value in kept.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(proto)
    rng = np.random.default_rng(5)
    sizes = {"x": INPUTS, **dict.fromkeys(carried, HIDDEN)}
    given = {name: rng.uniform(-1, 1, (40, 1, size)).astype(np.float32) for name, size in sizes.items()}
    outputs = [f"Y_{name}" for name in carried]
    model = lanner.compile(proto, given, output="value", output_name=outputs, mode="cheetah", precision="2%")
    turned = {name: value if name == "x" else np.swapaxes(value, 0, 1) for name, value in given.items()}
    exact = onnxruntime.InferenceSession(proto.SerializeToString()).run(outputs, turned)
    exact = np.concatenate([np.swapaxes(each, 0, 1).reshape(40, -1) for each in exact], axis=1)
    assert np.allclose(model.predict_float(given).reshape(40, -1), exact, atol=FLOAT_TOLERANCE)
    assert np.abs(model.predict_fixed(given).reshape(40, -1) - exact).max() < 0.02 * np.ptp(exact)
    sample = {name: value[:1] for name, value in given.items()}
    assert lanner.run(model, sample).integers == model.predict_integers(sample)[0][0].tolist()


@pytest.mark.parametrize("shape", [[STEPS, "n", INPUTS], [STEPS, 1, INPUTS]])
def test_inputs_whose_steps_come_first_are_turned(shape: list[Any]) -> None:
    node, weights = layer("RNN", reads="x")
    check(model_of([node, *squeezed("Y_h")], {**CONSTANTS, **weights}, shape), steps_first=True)


def test_the_samples_of_layout_1_come_first_everywhere() -> None:
    # onnxruntime has no layout 1: the same layer in layout 0 is compared.
    x = np.random.default_rng(3).standard_normal((SAMPLES, STEPS, INPUTS)).astype(np.float32)
    ends = {"Y": "second", "Y_h": "second", "Y_c": "second"}
    for output in ends:
        shape = [0, STEPS * HIDDEN] if output == "Y" else [0, HIDDEN]
        node, weights = layer("LSTM", reads="x", layout=1)
        row = helper.make_node("Reshape", [output, "shape"], ["y"])
        model = lanner.compile(
            model_of([node, row], {"shape": np.array(shape), **weights}, ["n", STEPS, INPUTS]),
            x,
            output="logits",
            mode="cheetah",
            allow_imprecise=True,
        )
        before = [helper.make_node("Transpose", [output], ["t"], perm=[2, 0, 1, 3] if output == "Y" else [1, 0, 2])]
        other = one_layer("LSTM", [*before, helper.make_node("Reshape", ["t", "shape"], ["y"])])
        other.graph.initializer.append(numpy_helper.from_array(np.array(shape), "shape"))
        expected = onnxruntime.InferenceSession(other.SerializeToString()).run(None, {"x": x})[0]
        assert np.allclose(model.native.float(x), expected, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE)


def loop(operator: str) -> onnx.ModelProto:
    """A loop that adds rows of the input to a sum."""

    def entries(**kinds: int) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, kind, [1, INPUTS] if kind == onnx.TensorProto.FLOAT else [])
            for name, kind in kinds.items()
        ]

    floats, whole, truth = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
    add = helper.make_node("Add", ["before", "row"], ["after"])
    if operator == "Scan":
        body = helper.make_graph([add], "body", entries(before=floats, row=floats), entries(after=floats))
        node = helper.make_node(
            "Scan", ["start", "x"], ["y"], name="layer", body=body, num_scan_inputs=1, scan_input_axes=[1]
        )
    else:
        same = helper.make_node("Identity", ["go"], ["on"])
        body = helper.make_graph(
            [same, add], "body", entries(at=whole, go=truth, before=floats), entries(on=truth, after=floats)
        )
        node = helper.make_node("Loop", ["row", "", "start"], ["y"], name="layer", body=body)
    row = helper.make_node("Gather", ["x", "last"], ["row"], axis=1)
    constants = {"start": np.zeros((1, INPUTS), np.float32), "last": np.array(-1)}
    return model_of([row, node], constants, [1, STEPS, INPUTS])


def brought_state() -> onnx.ModelProto:
    """An LSTM that starts from a function of the inputs."""
    node, weights = layer("LSTM")
    node.input[5] = "start"
    made = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["steps", "into"], ["all"], "all"),
        helper.make_node("ReduceMean", ["all"], ["start"], "start", axes=[0]),
    ]
    into = np.ones((INPUTS, HIDDEN), np.float32)
    return model_of([*made, node, *squeezed("Y_h")], {**CONSTANTS, **weights, "into": into}, ["n", STEPS, INPUTS])


REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "steps of no known number": (
        model_of([layer("RNN", reads="x")[0], *squeezed("Y_h")], {**CONSTANTS, **layer("RNN")[1]}, ["t", 1, INPUTS]),
        "input 0 of RNN has shape .*steps are as many as its first axis has",
    ),
    "sequences of several lengths": (
        one_layer("GRU", lengths=np.arange(SAMPLES) % STEPS + 1),
        "sequence_lens of GRU is .*all sequences must have the same number of steps",
    ),
    "states that differ by sample": (
        one_layer("RNN", h=np.random.default_rng(1).standard_normal((1, SAMPLES, HIDDEN))),
        "input 5 of RNN has shape .*the same for all samples",
    ),
    "an activation that nobody knows": (one_layer("RNN", activations=["Snake"]), "activations of RNN holds Snake"),
    "too few activations": (one_layer("LSTM", activations=["Tanh"]), "activations of LSTM is"),
    "weights of another shape": (
        one_layer("GRU", W=np.ones((1, 3 * HIDDEN, INPUTS + 1))),
        r"input 1 of GRU has shape \(1, 15, 5\)",
    ),
    "a scan": (loop("Scan"), "operator Scan is not supported: it is a loop"),
    "a loop": (loop("Loop"), "the number of steps of Loop depends on the input"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_layer_and_what_to_do(name: str) -> None:
    model, sentence = REFUSED[name]
    x = np.ones((1, *[side.dim_value for side in model.graph.input[0].type.tensor_type.shape.dim][1:]), np.float32)
    with pytest.raises(ModelError, match=sentence) as caught:
        lanner.compile(model, x, output="logits")
    reason = next(reason for reason in caught.value.nodes if reason.node == "layer")
    assert reason.fix


def test_weights_of_all_steps_are_kept_once() -> None:
    """Behind a rescale, which the first steps' weights take otherwise."""

    def bytes_of(steps: int) -> int:
        turn = helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])
        node, weights = layer("RNN")
        proto = model_of([turn, node, *ROWS], {**CONSTANTS, **weights}, ["n", steps, INPUTS])
        x = np.random.default_rng(3).standard_normal((SAMPLES, steps, INPUTS)).astype(np.float32)
        model = lanner.compile(proto, x, output="logits", mode="cheetah", precision=10)
        return int(model.report()["memory"]["server_bytes"])

    few, many = bytes_of(5), bytes_of(30)
    assert many < 3 * few
