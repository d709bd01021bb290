"""Wrong models and inputs as a newcomer gives them: one sentence with what, where and what to do, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from PIL import Image

from helpers.models import make_model, save_model, tiny_classifier, tiny_samples
from lanner.cli import main


def error_of(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> dict[str, Any]:
    """The error's document, after checking that people see the same in one line, and several reasons in one each."""
    assert main([*arguments, "--json"]) == code
    output = capsys.readouterr()
    (line,) = output.out.splitlines()
    error: dict[str, Any] = json.loads(line)["error"]
    reasons = error.get("nodes", [])
    reasons = reasons if len(reasons) > 1 else []
    sentence, *listed = output.err.splitlines()[-1 - len(reasons) :]
    assert sentence.startswith("error: ")
    assert error["what"] in sentence
    for reason, printed in zip(reasons, listed, strict=True):
        assert reason["reason"] in printed
        assert reason["fix"] in printed
    assert "\n" not in error["what"]
    return error


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = tiny_classifier()
    change(model)
    return model


def set_attribute(node: onnx.NodeProto, name: str, value: object) -> None:
    kept = [entry for entry in node.attribute if entry.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def of_type(kind: int) -> onnx.ModelProto:
    def change(model: onnx.ModelProto) -> None:
        model.graph.input[0].type.tensor_type.elem_type = kind

    return changed(change)


def single(operator: str) -> onnx.ModelProto:
    return make_model([helper.make_node(operator, ["x"], ["y"], name="odd")], ["n", 1, 8, 8], {})


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], str, str]] = {
    "an operator that is not supported": (lambda: single("Tan"), "node odd", "operator Tan is not supported"),
    "no layer": (lambda: single("Relu"), "net", "no convolution or matrix product"),
    "an input of integers": (lambda: of_type(onnx.TensorProto.INT64), "node conv1", "input x of Conv is of type INT64"),
    "a batch of four": (
        lambda: changed(lambda m: set_side(m, 0, 4)),
        "input x",
        "the input has shape (4, 1, 8, 8)",
    ),
    "sides that are not fixed": (
        lambda: changed(lambda m: set_side(m, 2, "height")),
        "input x",
        "the input has shape (n, 1, height, 8)",
    ),
    "an opset of the future": (
        lambda: changed(lambda m: setattr(m.opset_import[0], "version", 999)),
        "net.onnx",
        "opset 999 is newer",
    ),
    "a weight that is not there": (
        lambda: changed(lambda m: m.graph.initializer.pop(0)),
        "net.onnx",
        "input 'conv' of node: name: conv1 OpType: Conv is not output of any previous nodes",
    ),
    "weights of another kernel": (
        lambda: changed(lambda m: set_attribute(m.graph.node[0], "kernel_shape", [5, 3])),
        "node conv1",
        "kernel_shape of Conv is (5, 3), and its weights are of (3, 3)",
    ),
    "weights of another shape": (
        lambda: changed(lambda m: replace_input(m.graph.node[0], 1, "fc")),
        "node conv1",
        "input 1 of Conv has shape (4, 27)",
    ),
}


def set_side(model: onnx.ModelProto, axis: int, side: int | str) -> None:
    dimension = model.graph.input[0].type.tensor_type.shape.dim[axis]
    if isinstance(side, str):
        dimension.dim_param = side
    else:
        dimension.dim_value = side


def replace_input(node: onnx.NodeProto, index: int, name: str) -> None:
    node.input[index] = name


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    path = tmp_path / "samples.npy"
    np.save(path, tiny_samples())
    return path


@pytest.mark.parametrize("case", MODELS)
def test_wrong_model_exits_3(case: str, tmp_path: Path, calibration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, where, what = MODELS[case]
    path = save_model(tmp_path / "net.onnx", make())
    arguments = ["compile", str(path), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    error = error_of(capsys, arguments, 3)
    assert what in error["what"]
    assert error["where"].endswith(where)
    assert bool(error["where"]) == bool(where)
    assert error["fix"]
    assert not (tmp_path / "net.lanner").exists()


ARRAYS: dict[str, tuple[Any, str]] = {
    "of another shape": (np.zeros((4, 8, 8)), "the shape is (4, 8, 8)"),
    "empty": (np.zeros((0, 1, 8, 8)), "the shape is (0, 1, 8, 8)"),
    "not finite": (np.full((1, 1, 8, 8), np.nan), "element [0, 0, 0, 0] is nan"),
    "not numbers": (np.full((1, 1, 8, 8), "seven"), "the values are of type <U5"),
    "all zero": (np.zeros((4, 1, 8, 8)), "every value is 0"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_wrong_calibration_exits_6_naming_its_file(
    case: str, tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values, what = ARRAYS[case]
    np.save(tmp_path / "odd.npy", values)
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner")]
    for command in (
        [*arguments, "--calibration", str(tmp_path / "odd.npy")],
        ["run", str(tiny_onnx), str(tmp_path / "odd.npy")],
    ):
        error = error_of(capsys, command, 6)
        assert what in error["what"]
        assert error["where"] == str(tmp_path / "odd.npy")
        assert error["fix"]


@pytest.mark.parametrize(
    ("name", "fix"),
    [("scan.gif", ".png"), ("scan.DCM", "classify-pictures.md"), ("table.xlsx", ".csv")],
)
def test_well_known_files_that_are_not_read_are_to_be_converted(
    name: str, fix: str, tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"GIF89a")
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(tmp_path / name)]
    assert fix in error_of(capsys, arguments, 6)["fix"]


@pytest.mark.parametrize("name", ["model.pkl", "net.pt"])
def test_models_of_other_libraries_are_to_be_compiled_in_python(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04")
    np.save(tmp_path / "x.npy", tiny_samples(4))
    arguments = ["compile", str(tmp_path / name), "-o", str(tmp_path / "net.lanner")]
    error = error_of(capsys, [*arguments, "--calibration", str(tmp_path / "x.npy")], 3)
    assert "lanner.compile(" in error["fix"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("samples.text", "lanner does not read .text files"),
        ("samples.csv", "a row has 3 values"),
        ("header.csv", "this is a header"),
        ("binary.csv", "cannot be read as CSV (byte 0 is not text in UTF-8)"),
        ("objects.npy", "cannot be read as a NumPy file (it holds objects of Python, not numbers)"),
        ("net.png", "this is not a PNG or JPEG picture"),
        ("damaged.npy", "cannot be read as a NumPy file (its beginning is none)"),
        ("absent.npy", "no such file"),
    ],
)
def test_calibration_that_cannot_be_read_exits_6(
    name: str, what: str, tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "objects.npy":
        np.save(tmp_path / name, np.array([{}], dtype=object), allow_pickle=True)
    elif name != "absent.npy":
        (tmp_path / name).write_bytes({"header.csv": b"a,b\n1,2\n", "binary.csv": b"\xff\xfe"}.get(name, b"1,2,3\n"))
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(tmp_path / name)]
    error = error_of(capsys, arguments, 6)
    assert error["what"] == what
    assert error["where"].removesuffix(", line 1") == str(tmp_path / name)
    assert error["fix"]


def test_target_that_cannot_be_written_exits_2_before_the_work(
    tmp_path: Path, tiny_onnx: Path, tiny_label: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = str(tmp_path / "absent.npy")
    compiling = ["compile", str(tiny_onnx), "--calibration", absent, "-o"]
    for command in (compiling, ["export", str(tiny_label), "-o"]):
        assert error_of(capsys, [*command, str(tmp_path)], 2)["what"] == "this is a folder"
        error = error_of(capsys, [*command, str(tmp_path / "no" / "net.lanner")], 2)
        assert (error["what"], error["where"]) == ("there is no such folder to write to", str(tmp_path / "no"))


@pytest.mark.parametrize("option", ["--image", "--classes"])
def test_option_that_names_no_file_exits_2(
    option: str, tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    error = error_of(capsys, [*arguments, option, str(tmp_path / "absent")], 2)
    assert (error["what"], error["where"]) == ("no such file", str(tmp_path / "absent"))


def test_folder_in_the_place_of_a_file_is_told_as_such(
    tmp_path: Path, tiny_onnx: Path, tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    compiling = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    trust = ["--pin", "sha256:" + "0" * 64]
    for code, command in (
        (3, ["compile", str(folder), *compiling[2:]]),
        (2, [*compiling, "--classes", str(folder)]),
        (2, [*compiling, "--image", str(folder)]),
        (3, ["inspect", str(folder)]),
        (3, ["serve", str(folder)]),
        (3, ["run", str(folder), str(calibration)]),
        (3, ["estimate", str(folder)]),
        (3, ["keygen", str(folder), "-o", str(tmp_path / "keys")]),
        (2, ["serve", str(tiny_label), "--client-ca", str(folder)]),
        (2, ["predict", "127.0.0.1:1", str(calibration), "--ca", str(folder)]),
        (2, ["predict", "127.0.0.1:1", str(calibration), *trust, "--keys", str(folder)]),
        (6, ["evaluate", str(tiny_label), "--data", str(folder)]),
    ):
        error = error_of(capsys, command, code)
        assert (error["what"], error["where"]) == ("this is a folder, and a file is needed", str(folder))
        assert error["fix"] == "name a file"


def test_model_that_is_not_there_is_told_as_such(
    tmp_path: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = str(tmp_path / "absent.lanner")
    for command in (["serve"], ["inspect"], ["estimate"], ["debug", str(calibration)], ["run", str(calibration)]):
        error = error_of(capsys, [command[0], absent, *command[1:]], 3)
        assert (error["what"], error["where"], error["fix"]) == ("no such file", absent, "check the path")


def test_file_of_another_stage_is_told_by_its_name(
    tmp_path: Path, tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = tmp_path / "net.public"
    assert main(["export", str(tiny_label), "-o", str(public)]) == 0
    capsys.readouterr()
    error = error_of(capsys, ["serve", str(public)], 3)
    assert error["what"] == "this is a model's public half, which has no weights"
    arguments = ["compile", str(tiny_label), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    assert error_of(capsys, arguments, 3)["what"] == "this model is compiled already"
    error = error_of(capsys, ["keygen", str(calibration), "-o", str(tmp_path / "keys")], 3)
    assert error["what"] == "this is not a model's public half (byte 0 is not text in UTF-8)"
    assert error["fix"] == "give a file written by `lanner export`"


def test_state_directory_that_is_a_file_exits_2(
    tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["pairings"], ["doctor"], ["serve", str(tiny_label)]):
        error = error_of(capsys, [*command, "--state-dir", str(calibration)], 2)
        assert (error["what"], error["where"]) == (
            "this is a file, and the state directory is a folder",
            str(calibration),
        )


@pytest.mark.parametrize("command", ["serve", "predict"])
def test_port_without_a_host_exits_2(
    command: str, tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "serve": ["serve", str(tiny_label), "--listen", "7400"],
        "predict": ["predict", "7400", str(calibration), "--insecure-plaintext"],
    }
    error = error_of(capsys, arguments[command], 2)
    assert error["what"] == "7400 is a port without a host"
    assert "127.0.0.1:7400" in error["fix"]


def test_word_that_a_command_does_not_know_is_told_with_that_commands_help(
    tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiling = ["compile", str(tiny_onnx), "-o", "net.lanner", "--calibration", str(calibration)]
    for more in (["--mdoe", "gazelle"], ["another.onnx"]):
        error = error_of(capsys, [*compiling, *more], 2)
        assert error["what"] == f"unrecognized arguments: {' '.join(more)}"
        assert (error["where"], error["fix"]) == ("lanner compile", "see lanner compile --help")


def test_name_that_no_model_can_have_exits_2(tiny_label: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(capsys, ["serve", f"a b={tiny_label}"], 2)
    assert error["what"] == "'a b' is not a name for a model"


def test_description_of_images_without_a_field_names_it(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "image.toml").write_text("size = [8, 8]\n")
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    error = error_of(capsys, [*arguments, "--image", str(tmp_path / "image.toml")], 2)
    assert error["what"] == "there is no `channels`; it must be one of 1, 3"


@pytest.mark.parametrize("command", ["serve", "export", "evaluate"])
def test_onnx_where_a_compiled_model_is_wanted_exits_3(
    command: str, tmp_path: Path, tiny_onnx: Path, samples_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"export": ["-o", str(tmp_path / "net.public")], "evaluate": ["--data", str(samples_file)]}
    error = error_of(capsys, [command, str(tiny_onnx), *options.get(command, [])], 3)
    assert error["what"] == "this is an ONNX model, which must be compiled first"
    assert error["where"] == str(tiny_onnx)


def test_data_without_labels_exits_6(
    tmp_path: Path, tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", x=tiny_samples(2))
    error = error_of(capsys, ["evaluate", str(tiny_label), "--data", str(tmp_path / "x.npz")], 6)
    assert error["what"] == "there is no `y` in it but x"
    error = error_of(capsys, ["evaluate", str(tiny_label), "--data", str(calibration)], 6)
    assert error["what"] == "there are no labels in a .npy file"


def test_a_damaged_picture_that_is_read_gets_a_note_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "typical").mkdir()
    (tmp_path / "image.toml").write_text("channels = 1\nsize = [8, 8]\n")
    for name in ("a.jpg", "b.jpg"):
        # Of its EXIF the beginning alone is there.
        truncated = b"Exif\0\0II*\0\x08\0\0\0\x02\0\x12\x01"
        Image.new("L", (8, 8), 40).save(tmp_path / "typical" / name, exif=truncated)
    save_model(tmp_path / "net.onnx", tiny_classifier())
    arguments = ["compile", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.lanner")]
    arguments += ["--calibration", str(tmp_path / "typical"), "--image", str(tmp_path / "image.toml")]
    main(arguments)
    errors = capsys.readouterr().err
    assert "UserWarning" not in errors
    assert "PIL" not in errors
    for name in ("a.jpg", "b.jpg"):
        notes = [line for line in errors.splitlines() if line.startswith("note: ") and name in line]
        assert len(notes) == 1, errors
        assert "the picture may be damaged, and was used as it is" in notes[0]
