"""Networks whose output is a map: the client gets the map in its shape, or a label at each place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner as library
from helpers.models import make_model, random_weights, save_model
from helpers.processes import HUNG, lanner
from lanner.agreement import agrees
from lanner.errors import MisuseError, UnsupportedOpError
from lanner.gateway.outputs import outputs_of, response
from lanner.gateway.requests import InferenceRequest
from lanner.gateway.sessions import Answer
from lanner.prediction import SentMessage

CLASSES, SIDE, FEATURES = 3, 4, 6


def segmentation(ending: str = "", **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401 - as the operator takes
    """Two convolutions with scores of three classes for each of 4x4 pixels, and perhaps one operator more."""
    weights = random_weights(4, w1=(2, 1, 3, 3), b1=(2,), w2=(CLASSES, 2, 1, 1), b2=(CLASSES,))
    scores = "s" if ending else "y"
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2", "b2"], [scores], name="conv2"),
    ]
    if ending:
        nodes.append(helper.make_node(ending, ["s"], ["y"], name="end", **attributes))
    model = make_model(nodes, ["n", 1, SIDE, SIDE], weights)
    if ending == "ArgMax":
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


def autoencoder() -> onnx.ModelProto:
    weights = random_weights(5, w1=(3, FEATURES), b1=(3,), w2=(FEATURES, 3), b2=(FEATURES,))
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], name="encode", transB=1),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Gemm", ["b", "w2", "b2"], ["y"], name="decode", transB=1),
    ]
    return make_model(nodes, ["n", FEATURES], weights)


def pictures(count: int = 32, seed: int = 6) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, 1, SIDE, SIDE)).astype(np.float32)


def rows(count: int = 32, seed: int = 6) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, FEATURES)).astype(np.float32)


def of_onnx(proto: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    result: NDArray[Any] = session.run(None, {"x": x})[0]
    return result


def is_near(found: NDArray[Any], exact: NDArray[Any]) -> bool:
    return bool(np.abs(found - exact).max() <= 0.01 * (exact.max() - exact.min()))


@pytest.mark.parametrize("ending", ["", "Softmax", "Sigmoid"])
def test_a_map_is_told_as_its_values(ending: str) -> None:
    proto = segmentation(ending, **({"axis": 1} if ending == "Softmax" else {}))
    model = library.compile(proto, pictures(), mode="cheetah", name="net")
    assert (model.manifest.output, model.manifest.output_shape) == ("value", (CLASSES, SIDE, SIDE))
    assert any("map" in note for note in model.notes)
    x = pictures(1, seed=9)
    prediction = library.run(model, x)
    assert (prediction.label, prediction.logits, prediction.shape) == (None, None, [CLASSES, SIDE, SIDE])
    assert is_near(np.array(prediction.values).reshape(1, CLASSES, SIDE, SIDE), of_onnx(proto, x))
    assert library.Prediction.from_document(prediction.document()).shape == [CLASSES, SIDE, SIDE]


@pytest.mark.parametrize("ending", ["Softmax", "ArgMax"])
def test_logits_of_a_map_are_what_its_labels_follow_from(ending: str) -> None:
    proto = segmentation(ending, axis=1)
    model = library.compile(proto, pictures(), mode="cheetah", output="logits")
    x = pictures(1, seed=9)
    prediction = library.run(model, x)
    # The largest of all scores is no label of anything.
    assert (prediction.label, prediction.shape) == (None, [CLASSES, SIDE, SIDE])
    labels = np.array(prediction.logits).reshape(CLASSES, SIDE, SIDE).argmax(0)
    exact = of_onnx(proto, x)[0]
    assert (labels == (exact[0] if ending == "ArgMax" else exact.argmax(0))).mean() > 0.9


def labels_of(proto: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.int64]:
    """The classes of the pixels as onnxruntime gives them, shape (n, height, width)."""
    exact = of_onnx(proto, x)
    whole = exact.dtype == np.int64
    return exact[:, 0] if whole else exact.argmax(1)


@pytest.mark.parametrize(
    ("ending", "output"), [("", "label"), ("Softmax", "label"), ("ArgMax", "label"), ("ArgMax", None)]
)
@pytest.mark.parametrize("mode", ["cheetah", "falcon", "tabula"])
def test_a_map_has_a_label_at_each_place(ending: str, output: str | None, mode: str) -> None:
    proto = segmentation(ending, **({"axis": 1} if ending else {}))
    options: dict[str, Any] = {} if output is None else {"output": output}
    model = library.compile(proto, pictures(), mode=mode, classes=["ant", "bee", "cat"], **options)
    assert (model.manifest.output, model.manifest.places) == ("label-map", (SIDE, SIDE))
    assert any("the classes are axis 0" in note for note in model.notes)
    x = pictures(1, seed=9)
    prediction = library.run(model, x)
    assert prediction.labels is not None
    assert (prediction.label, prediction.logits, prediction.values) == (None, None, None)
    assert (prediction.shape, len(prediction.labels)) == ([SIDE, SIDE], SIDE * SIDE)
    assert prediction.class_names == [("ant", "bee", "cat")[label] for label in prediction.labels]
    # What is revealed is the reference's, place by place, and the network's where no two scores nearly tie.
    assert agrees(prediction, model.predict_integers(x)[0][0], model)
    assert np.mean(prediction.labels == labels_of(proto, x).ravel()) > 0.9
    exact = model.predict_float(x).reshape(-1, CLASSES).argmax(1)
    assert np.array_equal(exact, labels_of(proto, x).ravel())
    assert library.Prediction.from_document(prediction.document()) == prediction


def test_the_last_of_two_axes_has_the_classes_unless_names_say_otherwise() -> None:
    proto = make_model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")],
        ["n", 5, FEATURES],
        random_weights(7, w=(FEATURES, 4)),
    )
    x = np.random.default_rng(8).standard_normal((8, 5, FEATURES)).astype(np.float32)
    for names, places in ((None, 5), ("abcde", 4), ("abcd", 5)):
        classes = None if names is None else list(names)
        model = library.compile(proto, x, mode="cheetah", output="label", classes=classes)
        assert model.manifest.places == (places,)
        axis = 1 if places == 4 else 2
        assert library.run(model, x[0]).labels == of_onnx(proto, x[:1]).argmax(axis)[0].tolist()
    with pytest.raises(MisuseError, match="3 class names"):
        library.compile(proto, x, mode="cheetah", output="label", classes=["a", "b", "c"])


@pytest.mark.parametrize("output", ["probability", "top-k"])
def test_what_no_protocol_computes_for_each_place_is_refused_with_what_to_do(output: str) -> None:
    for proto in (segmentation(), segmentation("Softmax", axis=1)):
        with pytest.raises(MisuseError, match="is a map") as caught:
            library.compile(proto, pictures(), output=output)
        assert "choose label" in str(caught.value.fix)


def test_one_label_of_a_map_that_is_made_a_row_is_one() -> None:
    def flattened(*ending: onnx.NodeProto) -> onnx.ModelProto:
        proto = segmentation("Relu")
        del proto.graph.node[-1]
        proto.graph.node.extend(ending)
        proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        return proto

    row = (helper.make_node("Flatten", ["t"], ["f"], name="row"), helper.make_node("ArgMax", ["f"], ["y"], axis=1))
    proto, x = flattened(helper.make_node("Sigmoid", ["s"], ["t"]), *row), pictures(1, seed=9)
    model = library.compile(proto, pictures(), mode="cheetah", output="label")
    assert (model.manifest.output, model.manifest.places) == ("label", None)
    assert library.run(model, x).label == of_onnx(proto, x).ravel()[0]
    # The largest share of its place is not the largest score of all places.
    with pytest.raises(UnsupportedOpError, match="the largest of all places"):
        library.compile(flattened(helper.make_node("Softmax", ["s"], ["t"], axis=1), *row), pictures(), output="label")


def test_outputs_that_pick_along_different_axes_are_not_one() -> None:
    proto = segmentation("ArgMax", axis=1)
    proto.graph.node.append(helper.make_node("ArgMax", ["s"], ["z"], name="rows", axis=2))
    proto.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.INT64, None))
    with pytest.raises(UnsupportedOpError, match="another one than that of the file's other output"):
        library.compile(proto, pictures(), output="label")
    named = library.compile(proto, pictures(), mode="cheetah", output="label", output_name="z")
    assert named.manifest.places == (CLASSES, SIDE)


def test_whole_numbers_of_the_network_are_values_and_have_no_label() -> None:
    proto = segmentation("ArgMin", axis=1)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    assert library.compile(proto, pictures(), mode="cheetah", allow_imprecise=True).manifest.output == "value"
    with pytest.raises(MisuseError, match="whole numbers or truth values"):
        library.compile(proto, pictures(), output="label")


def test_labels_of_signs_have_no_shape_of_places() -> None:
    proto = segmentation("Sigmoid")
    model = library.compile(proto, pictures(), mode="cheetah", output="label")
    prediction = library.run(model, pictures(1, seed=9))
    assert (model.manifest.output, prediction.shape) == ("labels", None)


def test_clients_that_may_cheat_are_told_the_labels_of_places() -> None:
    model = library.compile(segmentation(), pictures(), mode="hardened", output="label", precision="2%")
    x = pictures(1, seed=9)
    prediction = library.run(model, x)
    assert (model.manifest.output, prediction.shape) == ("label-map", [SIDE, SIDE])
    assert (np.array(prediction.labels).reshape(1, SIDE, SIDE) == labels_of(segmentation(), x)).mean() > 0.9


def test_a_label_that_no_policy_tells_is_a_value_of_the_network() -> None:
    proto, x = segmentation("ArgMax", axis=1, select_last_index=1), pictures(3, seed=9)
    model = library.compile(proto, pictures(), mode="cheetah")
    assert model.manifest.output == "value"
    labels = [library.run(model, picture).values for picture in x]
    assert np.array_equal(np.array(labels).reshape(of_onnx(proto, x).shape), of_onnx(proto, x))


def test_commands_and_gateways_give_labels_of_places(tmp_path: Path) -> None:
    proto, x = segmentation("ArgMax", axis=1), pictures(4, seed=9)
    path, compiled = save_model(tmp_path / "net.onnx", proto), tmp_path / "net.lanner"
    np.save(tmp_path / "x.npy", pictures())
    made = lanner("compile", path, "-o", compiled, "--calibration", tmp_path / "x.npy")
    assert made.code == 0, made.errors
    calibration = made.document["calibration"]
    assert calibration["labels"] == 32 * SIDE * SIDE
    assert 0.95 * calibration["labels"] < calibration["labels_agree"] <= calibration["labels"]
    assert "the label of each of 16 places" in json.dumps(made.document["report"]["leakage"])
    labels = labels_of(proto, x)
    np.savez(tmp_path / "data.npz", x=x, y=labels)
    evaluated = lanner("evaluate", compiled, "--data", tmp_path / "data.npz", "--secure")
    assert evaluated.code == 0, evaluated.errors
    assert evaluated.document["float"]["accuracy"] == 1
    assert evaluated.document["secure"]["accuracy"] > 0.9
    np.savez(tmp_path / "data.npz", x=x, y=labels + CLASSES)
    assert lanner("evaluate", compiled, "--data", tmp_path / "data.npz").code == 6
    model = library.load(compiled)
    prediction = library.run(model, x[0])
    answer = Answer([prediction], opened=True, seconds=1.0, longest_sent=SentMessage(0, b""))
    body, _ = response(InferenceRequest(None, {"x": x[:1]}, None, binary=False), "net", "1", model.manifest, answer)
    (output,) = json.loads(body)["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("labels", "INT64", [1, SIDE, SIDE])
    assert output["data"] == prediction.labels


def test_an_autoencoder_gives_its_values() -> None:
    proto = autoencoder()
    model = library.compile(proto, rows(), mode="cheetah")
    assert model.manifest.output == "value"
    assert "choose output label if they are scores of classes" in model.notes[0]
    prediction = library.run(model, rows(1, seed=9))
    # A list says all of its shape itself.
    assert prediction.shape is None
    assert is_near(np.array(prediction.values), of_onnx(proto, rows(1, seed=9))[0])
    assert library.compile(proto, rows(), mode="cheetah", output="label").manifest.output == "label"


def test_commands_show_maps_and_compare_them_with_maps(tmp_path: Path) -> None:
    proto, x = segmentation(), pictures(4, seed=9)
    path = save_model(tmp_path / "net.onnx", proto)
    np.save(tmp_path / "x.npy", pictures())
    compiled = lanner("compile", path, "-o", tmp_path / "net.lanner", "--calibration", tmp_path / "x.npy")
    assert compiled.code == 0, compiled.errors
    assert "is a map" in compiled.errors
    np.save(tmp_path / "one.npy", x[:1])
    shown = subprocess.run(
        [sys.executable, "-m", "lanner", "run", str(tmp_path / "net.lanner"), str(tmp_path / "one.npy")],
        capture_output=True,
        text=True,
        timeout=HUNG,
        check=True,
    )
    assert f"map of {CLASSES} x {SIDE} x {SIDE}, from " in shown.stdout
    np.savez(tmp_path / "data.npz", x=x, y=of_onnx(proto, x))
    evaluated = lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz")
    assert evaluated.code == 0, evaluated.errors
    assert evaluated.document["fixed"]["mean_absolute_error"] < 0.01
    np.savez(tmp_path / "data.npz", x=x, y=np.zeros((4, SIDE, SIDE), np.float32))
    assert lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz").code == 6


def test_rows_calibrate_a_network_that_ends_in_labels_of_places(tmp_path: Path) -> None:
    path = save_model(tmp_path / "net.onnx", segmentation("ArgMax", axis=1))
    np.savetxt(tmp_path / "x.csv", pictures(8).reshape(8, -1), delimiter=",")
    arguments = ("compile", path, "-o", tmp_path / "net.lanner", "--calibration", tmp_path / "x.csv")
    for output in ((), ("--output", "logits")):
        compiled = lanner(*arguments, *output)
        assert compiled.code == 0, compiled.errors


def test_clients_and_gateways_give_maps_their_shape() -> None:
    model, x = library.compile(segmentation(), pictures(), mode="cheetah", name="net"), pictures(2, seed=9)
    with library.Server(model) as server, library.Client(server.address, pin=server.fingerprint) as client:
        predictions = client.predict_batch(x)
    assert [prediction.shape for prediction in predictions] == [[CLASSES, SIDE, SIDE]] * 2
    assert [tuple(each.shape) for each in outputs_of(model.manifest)] == [(CLASSES, SIDE, SIDE)]
    answer = Answer(predictions, opened=True, seconds=1.0, longest_sent=SentMessage(0, b""))
    request = InferenceRequest(None, {"x": x}, None, binary=False)
    body, _ = response(request, "net", "1", model.manifest, answer)
    (output,) = json.loads(body)["outputs"]
    assert (output["name"], output["shape"]) == ("values", [2, CLASSES, SIDE, SIDE])
    assert is_near(np.array(output["data"]).reshape(2, CLASSES, SIDE, SIDE), of_onnx(segmentation(), x))
