"""``lanner inspect`` prints the command that compiles the file, with the options that it was given."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from lanner.cli import main


def test_inspect_prints_the_command_to_run_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "width"])]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], [0.5] * 8)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    told = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])]
    file = tmp_path / "net.onnx"
    graph = helper.make_graph(nodes, "net", given, told, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    assert main(["inspect", str(file), "--shape", "width=4", "--output", "value"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    wanted = f"lanner compile {file} -o net.lanner --calibration typical.npy --output value --shape width=4"
    assert last == f"next: {wanted}"


@pytest.mark.parametrize(
    ("name", "added"),
    [("input_ids", ["--calibration", "typical.txt", "--text", "tokenizer.json,length=6"]), ("users", ["typical.npy"])],
)
def test_inputs_that_a_text_makes_have_the_option_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, added: list[str]
) -> None:
    table = helper.make_tensor("table", TensorProto.FLOAT, [5, 2], [0.5] * 10)
    file = tmp_path / "net.onnx"
    nodes = [
        helper.make_node("Gather", ["table", name], ["words"]),
        helper.make_node("ReduceMean", ["words"], ["y"], axes=[1], keepdims=0),
    ]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", 6])]
    told = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])]
    graph = helper.make_graph(nodes, "net", given, told, [table])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    assert main(["inspect", str(file)]) == 0
    words = capsys.readouterr().out.splitlines()[-1].split()
    assert words[-len(added) :] == added
