"""The importer: what is refused, naming the node, the operator and the attribute, and how nodes are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from helpers.models import make_model, random_weights, save_model, tiny_classifier
from lanner.errors import ModelError, UnsupportedOpError
from lanner.onnx import import_model
from lanner.onnx.load import load_proto

IMAGE = ("n", 3, 8, 8)


def single(operator: str, *inputs: str, weights: dict[str, Any] | None = None, **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401
    """A model of one node named ``under_test``."""
    node = helper.make_node(operator, ["x", *inputs], ["y"], name="under_test", **attributes)
    return make_model([node], IMAGE, weights or {})


def weight(*shape: int) -> dict[str, Any]:
    return {"w": random_weights(0, w=shape)["w"]}


def bounds(**values: list[int]) -> dict[str, Any]:
    """Constant integers, as starts, ends, axes, pads or indices."""
    return {name: np.array(value, np.int64) for name, value in values.items()}


def conditional() -> onnx.ModelProto:
    """An If whose condition is secret and whose branches read the secret without listing it."""
    branches = [
        helper.make_graph(
            [helper.make_node(operator, ["x"], [f"{operator}_out"])],
            operator,
            [],
            [helper.make_tensor_value_info(f"{operator}_out", onnx.TensorProto.FLOAT, IMAGE)],
        )
        for operator in ("Relu", "Neg")
    ]
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("If", ["same"], ["z"], name="under_test", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Add", ["same", "z"], ["y"]),
    ]
    return make_model(nodes, IMAGE, {})


UNSUPPORTED: dict[str, tuple[onnx.ModelProto, str]] = {
    "operator": (single("Tan"), "operator Tan"),
    "kernel of one axis on an image": (single("MaxPool", kernel_shape=[2]), "kernel_shape of MaxPool"),
    "transpose of other axes": (single("Transpose", perm=[0, 2, 1]), "perm of Transpose"),
    "pool behind a transpose of the batch": (
        make_model(
            [
                helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2, 3]),
                helper.make_node("GlobalMaxPool", ["t"], ["y"], name="under_test"),
            ],
            IMAGE,
            {},
        ),
        "input 0 of GlobalMaxPool",
    ),
    "concat with a constant for several samples": (
        single("Concat", "w", weights=weight(2, 3, 8, 8), axis=1),
        "input 1 of Concat",
    ),
    "concat with a constant of another shape": (
        single("Concat", "w", weights=weight(1, 3, 8, 9), axis=1),
        "inputs of Concat",
    ),
    "concat of samples": (single("Concat", "x", axis=0), "axis of Concat"),
    "slice of samples": (single("Slice", "f", "t", "f", "t", weights=bounds(f=[0], t=[2])), "steps of Slice"),
    "slice of nothing": (single("Slice", "f", "t", "a", weights=bounds(f=[5], t=[2], a=[2])), "ends of Slice"),
    "pad by more than there is to reflect": (
        single("Pad", "p", weights=bounds(p=[0, 0, 0, 8, 0, 0, 0, 0]), mode="reflect"),
        "pads of Pad",
    ),
    "pad of the batch": (single("Pad", "p", weights=bounds(p=[1] + [0] * 7)), "pads of Pad"),
    "split of samples": (single("Split", "s", weights=bounds(s=[1]), axis=0), "axis of Split"),
    "gather beyond the axis": (single("Gather", "i", weights=bounds(i=[0, 8]), axis=2), "input 1 of Gather"),
    "gather of samples": (single("Gather", "i", weights=bounds(i=[0])), "axis of Gather"),
    "slopes that do not broadcast": (single("PRelu", "w", weights=weight(2, 1, 1)), "input 1 of PRelu"),
    "sum of two ranks": (
        make_model(
            [
                helper.make_node("ReduceMean", ["x"], ["m"], axes=[1, 2], keepdims=0),
                helper.make_node("Add", ["x", "m"], ["y"], name="under_test"),
            ],
            IMAGE,
            {},
        ),
        "input 1 of Add",
    ),
    "sum of two shapes": (
        make_model(
            [
                helper.make_node("Slice", ["x", "f", "t", "a"], ["s"]),
                helper.make_node("Add", ["x", "s"], ["y"], name="under_test"),
            ],
            IMAGE,
            bounds(f=[0], t=[2], a=[2]),
        ),
        "inputs of Add",
    ),
    "resize of samples": (
        single("Resize", "", "s", weights={"s": np.array([2, 1, 1, 1], np.float32)}, mode="nearest"),
        "sizes of Resize",
    ),
    "resize that runtimes do differently": (
        single(
            "Resize",
            "",
            "s",
            weights={"s": np.array([1, 1, 1.1, 1], np.float32)},
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        "sizes of Resize",
    ),
    "transposed convolution of two secrets": (single("ConvTranspose", "x"), "input 1 of ConvTranspose"),
    "transposed convolution that runtimes do differently": (
        single("ConvTranspose", "w", weights=weight(3, 2, 1, 1), strides=[2, 2], auto_pad="SAME_UPPER"),
        "auto_pad of ConvTranspose",
    ),
    "blocks that do not fit": (single("DepthToSpace", blocksize=2), "blocksize of DepthToSpace"),
    "tile of samples": (single("Tile", "r", weights=bounds(r=[2, 1, 1, 1])), "repeats of Tile"),
    "expansion of samples": (single("Expand", "s", weights=bounds(s=[2, 3, 8, 8])), "shape of Expand"),
    "sum over samples": (single("Einsum", equation="nchw->c"), "equation of Einsum"),
    "diagonal": (single("Einsum", equation="ncii->nci"), "equation of Einsum"),
    "einsum of two secrets": (single("Einsum", "x", equation="nchw,nchw->n"), "equation of Einsum"),
    "cast to integers": (single("Cast", to=6), "to of Cast"),
    "reshape across samples": (
        single("Reshape", "w", weights={"w": np.array([3, -1], np.int64)}),
        "shape of Reshape",
    ),
    "mean over samples": (single("ReduceMean", axes=[0, 1]), "axes of ReduceMean"),
    "mean over everything": (single("ReduceMean"), "axes of ReduceMean"),
    "product over samples": (single("ReduceProd", axes=[0]), "axes of ReduceProd"),
    "softmax over the batch": (single("Softmax", axis=0), "axis of Softmax"),
    "division by zero": (single("Div", "w", weights={"w": np.zeros(1, np.float32)}), "input 1 of Div"),
    "constant that enlarges": (single("Add", "w", weights=weight(2, 3, 8, 8)), "input 1 of Add"),
    "power of 0": (single("Pow", "w", weights={"w": np.float32(0)}), "input 1 of Pow"),
    "powers that differ": (single("Pow", "w", weights=weight(3, 1, 1)), "input 1 of Pow"),
    "product with matrices for several samples": (
        single("MatMul", "w", weights=weight(2, 1, 8, 2)),
        "input 1 of MatMul",
    ),
    "bias of several rows": (
        make_model(
            [
                helper.make_node("Flatten", ["x"], ["f"]),
                helper.make_node("Gemm", ["f", "w", "b"], ["y"], name="under_test"),
            ],
            IMAGE,
            random_weights(0, w=(192, 2), b=(3, 2)),
        ),
        "input 2 of Gemm",
    ),
    "bounds that contradict each other": (
        single("Clip", "l", "h", weights={"l": np.float32(2), "h": np.float32(1)}),
        "input 1 of Clip",
    ),
    "branch": (conditional(), "the condition of If has shape"),
    "convolution of two secrets": (single("Conv", "x"), "input 1 of Conv"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_names_node_operator_and_attribute(name: str) -> None:
    model, sentence = UNSUPPORTED[name]
    with pytest.raises(UnsupportedOpError, match=sentence) as caught:
        import_model(model)
    assert caught.value.where == "node under_test"


def test_operator_of_another_domain_is_named() -> None:
    node = helper.make_node("FusedGemm", ["x"], ["y"], name="fused", domain="com.microsoft")
    model = single("Relu")
    model.graph.node[0].CopyFrom(node)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedOpError, match=r"node fused: operator FusedGemm of domain com\.microsoft"):
        import_model(model)


@pytest.mark.parametrize("operator", ["Softmax", "ArgMax"])
def test_final_operators_may_stand_in_the_middle(operator: str) -> None:
    nodes = [
        helper.make_node(operator, ["x"], ["p"], name="early", axis=1),
        helper.make_node("Cast", ["p"], ["c"], name="numbers", to=onnx.TensorProto.FLOAT),
        helper.make_node("Neg", ["c"], ["y"], name="late"),
    ]
    assert import_model(make_model(nodes, IMAGE, {})).operators[operator] == 1


@pytest.mark.parametrize("shape", [("n", "c", 8, 8), ("n", 3, 0, 8), ("n",), (), ("n", None, 8)], ids=str)
def test_shape_must_be_fixed_but_for_the_batch(shape: tuple[int | str | None, ...]) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], shape, {})
    with pytest.raises(ModelError, match="input x"):
        import_model(model)


def test_inputs_that_nobody_reads_do_not_matter_and_of_outputs_one_is_named() -> None:
    model = single("Relu")
    second = helper.make_tensor_value_info("x2", onnx.TensorProto.FLOAT, ["n", 1])
    model.graph.input.append(second)
    assert [entry.named.name for entry in import_model(model).entries] == ["x"]
    model = single("Relu")
    model.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, IMAGE))
    with pytest.raises(ModelError, match=r'2 outputs \(y, z\), and one is computed.*output_name="y"'):
        import_model(model)


def test_input_must_be_of_numbers() -> None:
    model = single("Transpose", perm=[0, 2, 3, 1])
    for entry in (model.graph.input[0], model.graph.output[0]):
        entry.type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(UnsupportedOpError, match="node under_test: input x of Transpose is of type"):
        import_model(model)


def test_an_output_may_leave_its_shape_out() -> None:
    model = single("Relu")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert import_model(model).graph.output_shape == (3, 8, 8)


def test_outputs_that_nobody_reads_do_not_matter() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["pooled", "indices"], kernel_shape=[2, 2]),
        helper.make_node("Dropout", ["pooled"], ["kept", "mask"]),
        helper.make_node("Split", ["kept", "sizes"], ["unused", "y"], axis=1),
    ]
    model = import_model(make_model(nodes, IMAGE, bounds(sizes=[1, 2])))
    assert model.graph.output_shape == (2, 7, 7)


def test_views_behind_the_last_softmax_do_not_matter() -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["p"], axis=1),
        helper.make_node("Reshape", ["p", "shape"], ["q"]),
        helper.make_node("Identity", ["q"], ["y"]),
    ]
    assert import_model(make_model(nodes, IMAGE, bounds(shape=[-1, 192, 1]))).logits == ("logits",)


def test_output_must_depend_on_the_input() -> None:
    model = make_model([helper.make_node("Constant", [], ["y"], value_float=1.0)], IMAGE, {})
    with pytest.raises(ModelError, match="does not depend"):
        import_model(model)


def test_weights_must_be_finite() -> None:
    value = np.array([1, np.nan, 2], dtype=np.float32).reshape(3, 1, 1)
    with pytest.raises(ModelError, match=r"node under_test.*NaN"):
        import_model(single("Mul", "w", weights={"w": value}))


def test_nodes_beside_the_way_to_the_output_do_not_matter() -> None:
    model = tiny_classifier()
    model.graph.node.append(helper.make_node("Sigmoid", ["y"], ["unused"], name="beside"))
    assert "Sigmoid" not in import_model(model).operators


def test_nodes_keep_their_names_and_unnamed_ones_get_their_outputs() -> None:
    model = tiny_classifier()
    model.graph.node[1].name = ""
    model.graph.node[2].name = "conv1"
    nodes = json.loads(import_model(model).graph.document)["nodes"]
    assert [node["name"] for node in nodes] == ["conv1", "b", "conv1.MaxPool", "flat", "fc1"]


def test_document_is_of_the_agreed_form() -> None:
    graph = import_model(tiny_classifier()).graph
    document = json.loads(graph.document)
    assert document["format_version"] == 2
    assert document["inputs"] == [{"name": "x", "shape": [1, 8, 8]}]
    assert document["output"] == "fc1"
    assert document["nodes"][0] == {
        "name": "conv1",
        "op": {
            "Conv": {
                "strides": [1, 1],
                "pads": [0, 0, 0, 0],
                "dilations": [1, 1],
                "groups": 1,
                "weight": "conv1.weight",
                "bias": "conv1.bias",
            }
        },
        "inputs": ["x"],
    }
    assert graph.tensors["fc1.weight"].shape == (27, 4)
    assert all(tensor.dtype == np.float32 and tensor.flags.c_contiguous for tensor in graph.tensors.values())
    assert graph.output_shape == (4,)


def test_output_named_like_a_tensor_inside_is_told_by_name(tmp_path: Path) -> None:
    # As torch.onnx writes a module whose operator has the name that its caller chose for the output.
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["y"], ["y"])]
    path = save_model(tmp_path / "net.onnx", make_model(nodes, IMAGE, {}))
    with pytest.raises(ModelError, match=r"net\.onnx: two nodes have an output of the name 'y'.*output_names"):
        import_model(path)


@pytest.mark.parametrize("operator", ["Dropout", "BatchNormalization"])
def test_training_is_refused_with_the_way_out(operator: str) -> None:
    if operator == "Dropout":
        model = single("Dropout", "", "yes", weights={"yes": np.array(True)})
    else:
        ones = {name: np.ones(3, np.float32) for name in ("scale", "bias", "mean", "var")}
        model = single("BatchNormalization", *ones, weights=ones, training_mode=1)
    with pytest.raises(UnsupportedOpError, match=rf"training_mode of {operator} is .*model\.eval\(\)"):
        import_model(model)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x08\x12", b"\xff" * 64])
def test_damaged_file_is_a_model_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"net\.onnx"):
        import_model(path)


def test_every_truncation_is_a_model_error(tmp_path: Path) -> None:
    whole = save_model(tmp_path / "net.onnx", tiny_classifier()).read_bytes()
    for length in range(0, len(whole) - 1, 37):
        (tmp_path / "net.onnx").write_bytes(whole[:length])
        with pytest.raises(ModelError):
            import_model(tmp_path / "net.onnx")


def test_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        load_proto(tmp_path / "absent.onnx")


def test_opset_from_the_future_is_named() -> None:
    model = tiny_classifier()
    model.opset_import[0].version = 10_000
    with pytest.raises(ModelError, match="opset 10000 is newer"):
        import_model(model)


def test_loading_leaves_the_given_model_alone() -> None:
    model = tiny_classifier(opset=9)
    before = model.SerializeToString()
    import_model(model)
    assert model.SerializeToString() == before
