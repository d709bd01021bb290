"""--csv-header: every command that reads rows of CSV refuses a first line that may be a header until it is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanner
from helpers.models import tiny_samples
from helpers.processes import lanner as command
from lanner.errors import InputError
from lanner.ray.pieces import Reading, samples_in

MAY_BE = "this line may be a header of numbers"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Samples as pandas writes a table whose columns have no names: their places come first."""
    return write_table(tmp_path / "table.csv", tiny_samples())


def write_table(path: Path, x: np.ndarray) -> Path:
    lines = [range(x[0].size), *x.reshape(len(x), -1).tolist()]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


def test_every_command_refuses_what_may_be_a_header(table: Path, tiny_onnx: Path, tiny_label: Path) -> None:
    data = table.parent / "data.npz"
    np.savez(data, x=tiny_samples(), y=lanner.load(tiny_label).predict_float(tiny_samples()).argmax(1))
    samples = ["--calibration", table]
    for arguments in (
        ["compile", tiny_onnx, "-o", table.parent / "net.lanner", *samples],
        ["run", tiny_onnx, table],
        ["run", tiny_label, table],
        ["debug", tiny_label, table],
        ["estimate", tiny_onnx, *samples],
        ["evaluate", tiny_label, "--data", data, "--bits", "8..8", *samples],
        ["inspect", tiny_label, "--data", data, "--bits", "8..8", *samples],
        ["predict", "127.0.0.1:9", table, "--insecure-plaintext"],
    ):
        done = command(*arguments)
        assert (done.code, done.document["error"]["what"]) == (6, MAY_BE), arguments
        assert done.document["error"]["where"] == f"{table}, line 1"


def test_header_is_left_out_or_is_an_input_as_its_owner_says(table: Path, tiny_onnx: Path, tiny_label: Path) -> None:
    compiling = ["compile", tiny_onnx, "-o", table.parent / "net.lanner", "--mode", "cheetah", "--calibration", table]
    told = command(*compiling, "--csv-header")
    assert (told.code, told.document["calibration"]["samples"]) == (0, len(tiny_samples()))
    # The places of 64 columns are numbers as others, and so is their sample's range.
    told = command(*compiling, "--no-csv-header")
    assert (told.code, told.document["calibration"]["samples"]) == (0, len(tiny_samples()) + 1)
    one = write_table(table.parent / "one.csv", tiny_samples(1, seed=5))
    (prediction,) = command("run", tiny_label, one, "--csv-header").document["predictions"]
    assert prediction["label"] == lanner.load(tiny_label).predict_fixed(tiny_samples(1, seed=5)).argmax()
    done = command("run", tiny_label, one, "--no-csv-header")
    assert (done.code, done.document["error"]["where"]) == (6, str(one))
    assert "outside the accepted range" in done.document["error"]["what"]


@pytest.mark.parametrize("option", ["--csv-header", "--no-csv-header"])
def test_option_without_a_csv_file_is_misuse(option: str, tmp_path: Path, tiny_onnx: Path, tiny_label: Path) -> None:
    np.save(tmp_path / "x.npy", tiny_samples())
    for arguments in (
        ["compile", tiny_onnx, "-o", tmp_path / "net.lanner", "--calibration", tmp_path / "x.npy"],
        ["run", tiny_label, tmp_path / "x.npy"],
        ["estimate", tiny_label],
        ["evaluate", tiny_label, "--data", tmp_path / "x.npz"],
        ["inspect", tiny_label],
        ["predict", "127.0.0.1:9", tmp_path / "x.npy", "--insecure-plaintext"],
    ):
        done = command(*arguments, option)
        assert done.code == 2, arguments
        assert "--csv-header goes with" in done.document["error"]["what"]


def test_worker_reads_files_as_it_is_told(tmp_path: Path, tiny_label: Path) -> None:
    x, manifest = tiny_samples(1, seed=5), lanner.load(tiny_label).manifest
    block = np.array([str(write_table(tmp_path / "one.csv", x))])
    with pytest.raises(InputError, match=MAY_BE):
        samples_in(block, slice(0, 1), Reading(), manifest, 0)
    assert np.array_equal(samples_in(block, slice(0, 1), Reading(csv_header=True), manifest, 0), x)
