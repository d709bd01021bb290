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
