"""Tables whose columns differ in size: labels as onnxruntime's, ranges by column, and what a client is told of them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import train_test_split

import lanner
from helpers.models import save_model
from helpers.tables import FORMS, Table, table_model, trained
from lanner.cli import main
from lanner.errors import InputError
from lanner.inputs import check_range
from lanner.manifest import InputDescription

EXPORTED = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data") / "exported"


def agreement(model: lanner.Model, x: NDArray[np.float32]) -> float:
    """The share of samples with one label of onnxruntime's scores and the fixed-point network's; none may overflow."""
    integers, overflows = model.predict_integers(model.manifest.input.clip(x))
    assert overflows == 0
    return float((model.predict_float(x).argmax(1) == integers.argmax(1)).mean())


def stated(table: Table) -> tuple[float, float]:
    """One range for all columns, as inputs had it before features had units."""
    return min(0.0, float(table.train.min())), 2 * float(table.train.max())


@pytest.mark.parametrize("mode", ["gazelle", "cheetah"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["cancer", "wine", "iris"])
def test_labels_are_those_of_float_wherever_the_scaler_is(name: str, form: str, mode: str) -> None:
    table = trained(name)
    model = lanner.compile(table_model(table, form), table.train, mode=mode)
    assert agreement(model, table.test) >= 0.98
    entry = model.manifest.input
    assert (entry.features is not None) == (name != "iris")
    # Nearly every new row lies within twice the range of each column.
    assert (entry.clip(table.test) == table.test).all(1).mean() > 0.97


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_one_unit_for_all_columns_loses_the_labels(name: str) -> None:
    table = trained(name)
    model = lanner.compile(table_model(table, "scaler"), table.train, input_range=stated(table), precision=8)
    assert model.manifest.input.features is None
    integers, _ = model.predict_integers(table.test)
    assert (model.predict_float(table.test).argmax(1) == integers.argmax(1)).mean() < 0.8


@pytest.mark.parametrize("form", FORMS)
def test_a_regression_keeps_its_digits(form: str) -> None:
    table = trained("diabetes")
    errors = []
    for keywords in ({}, {"input_range": stated(table)}):
        model = lanner.compile(table_model(table, form), table.train, output="logits", precision=8, **keywords)  # type: ignore[arg-type]
        x = model.manifest.input.clip(table.test)
        exact = model.predict_float(x)
        errors.append(np.sqrt(np.mean((exact - model.predict_fixed(x)) ** 2) / exact.var()))
    assert errors[0] < 0.02
    assert errors[1] > 3 * errors[0]


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
@pytest.mark.parametrize("published", [False, True])
def test_secure_runs_equal_the_reference(mode: str, published: bool) -> None:
    table = trained("cancer")
    model = lanner.compile(
        table_model(table, "scaler"), table.train, mode=mode, output="logits", public_preprocessing=published
    )
    x = table.test[:2]
    for sample, expected in zip(x, model.predict_integers(x)[0], strict=True):
        assert lanner.run(model, sample).integers == expected.tolist()


@pytest.mark.parametrize("form", ["scaler", "batch norm"])
@pytest.mark.parametrize("name", ["cancer", "wine", "iris"])
def test_a_scaler_can_be_published(name: str, form: str) -> None:
    table = trained(name)
    model = lanner.compile(table_model(table, form), table.train, public_preprocessing=True)
    assert agreement(model, table.test) >= 0.98
    told = model.manifest.document["network"]["input"]["features"]["preprocessing"]
    assert np.allclose(told["factors"], 1 / table.deviations, rtol=1e-5)
    assert np.allclose(told["terms"], -table.means / table.deviations, rtol=1e-4)
    assert "public preprocessing" in model.report()["leakage"]["client"]


def test_without_a_scaler_there_is_nothing_to_publish() -> None:
    table = trained("iris")
    with pytest.raises(lanner.LannerError, match="no constant factor") as caught:
        lanner.compile(table_model(table, "raw"), table.train, public_preprocessing=True)
    assert caught.value.exit_code == 2


def test_no_mean_or_deviation_is_told() -> None:
    table = trained("cancer")
    model = lanner.compile(table_model(table, "scaler"), table.train, precision=8)
    told = model.manifest.document["network"]["input"]
    assert set(told["features"]) == {"axis", "exponents", "centres"}
    # A power of two, and so is every feature's.
    assert told["scale"]["grid"] % 8 == 0
    assert all(centre % 64 == 0 for centre in told["features"]["centres"])
    features = model.manifest.input.features
    assert features is not None
    spans = np.maximum(table.train.max(0), 0) - np.minimum(table.train.min(0), 0)
    for unit, span, centre in zip(features.unit, spans, told["features"]["centres"], strict=True):
        assert math.frexp(unit)[0] == 0.5
        assert centre != 0 or 256 <= span / unit < 512
    assert "its centre" in model.report()["leakage"]["client"]
    assert len(model.report()["features"]) == 30


def test_neighbours_in_the_table_are_told_alike() -> None:
    table = trained("wine")
    documents = []
    for factor in (1.0, 0.999):
        x = table.train.copy()
        # Who has the largest value has a little less.
        x[x[:, 5].argmax(), 5] *= np.float32(factor)
        documents.append(lanner.compile(table_model(table, "raw"), x).manifest.document["network"])
    assert documents[0] == documents[1]


@pytest.mark.parametrize("published", [False, True])
def test_python_and_the_native_module_draw_one_line(published: bool) -> None:
    table = trained("wine")
    model = lanner.compile(table_model(table, "scaler"), table.train, public_preprocessing=published)
    entry, features = model.manifest.input, model.manifest.input.features
    assert features is not None
    for column in range(13):
        for end, sign in ((features.low[column], -1), (features.high[column], 1)):
            for beyond, is_in in ((0.0, True), (0.45, True), (0.6, False), (100.0, False)):
                x = table.test[:1].copy()
                x[0, column] = end + sign * beyond * features.unit[column]
                if is_in:
                    check_range(x, entry)
                    model.native.fixed(x)
                    continue
                with pytest.raises(InputError, match=f"element \\[0, {column}\\] .* of feature {column} "):
                    check_range(x, entry)
                with pytest.raises(Exception, match=f"value {column} \\(feature {column}\\)"):
                    model.native.fixed(x)


def test_a_value_beyond_its_columns_range_is_refused_naming_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = trained("cancer")
    network = save_model(tmp_path / "net.onnx", table_model(table, "batch norm"))
    np.save(tmp_path / "train.npy", table.train)
    # An area where a smoothness belongs: usual for the table, not for its column.
    x = table.test[:1].copy()
    x[0, 4] = x[0, 3]
    np.save(tmp_path / "x.npy", x)
    target = tmp_path / "net.lanner"
    arguments = ["compile", str(network), "-o", str(target), "--calibration", str(tmp_path / "train.npy")]
    assert main(arguments) == 0
    assert "each feature in its own range" in capsys.readouterr().out
    assert main(["run", str(target), str(tmp_path / "x.npy")]) == 6
    assert "of feature 4 [" in capsys.readouterr().err


def test_the_command_line_publishes_only_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = trained("iris")
    network = save_model(tmp_path / "net.onnx", table_model(table, "scaler"))
    np.save(tmp_path / "train.npy", table.train)
    arguments = ["compile", str(network), "--calibration", str(tmp_path / "train.npy"), "-o"]
    for option, is_told in (([], False), (["--public-preprocessing"], True)):
        target = tmp_path / f"{len(option)}.lanner"
        assert main([*arguments, str(target), *option]) == 0
        capsys.readouterr()
        assert main(["inspect", str(target)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert ("published factor" in shown) == is_told
        assert ("as the owner asked: public preprocessing" in shown) == is_told
    assert main([*arguments, str(target), "--public-preprocessing", "--input-range=0,10"]) == 2


def test_limits_of_features_follow_from_the_document() -> None:
    features = {
        "axis": 1,
        "exponents": [0, -3],
        "centres": [0, 640],
        "preprocessing": {"factors": [-2.0, 1.0], "terms": [1.0, 0.0]},
    }
    document = {
        "name": "x",
        "shape": [4, 2],
        "scale": {"grid": 8},
        "low": -8,
        "high": 16,
        "features": features,
        "modulus": 114_689,
    }
    entry = InputDescription.from_document(document)
    assert entry.features is not None
    assert entry.features.low == (-15.5, 158.0)
    assert entry.features.high == (8.5, 164.0)
    assert entry.features.unit == (1.0, 0.25)
    assert (entry.low, entry.high) == (-15.5, 164.0)
    clipped = entry.clip(np.full((3, 4, 2), 1000, np.float32))
    assert clipped.dtype == np.float32
    assert clipped[1, 2].tolist() == [8.5, 164.0]
    with pytest.raises(InputError, match=r"element \[0, 0, 1\] is outside .* of feature 1 \[158, 164\]"):
        check_range(np.zeros((1, 4, 2), np.float32), entry)


@pytest.mark.parametrize(
    ("name", "least"), [("tabraw_cancer_ts17", 0.98), ("tabbn_cancer_ts17", 0.98), ("tabraw_iris_ts17", 0.95)]
)
def test_exported_networks_on_raw_tables(name: str, least: float) -> None:
    path = EXPORTED / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{name} is not in {EXPORTED}; set LANNER_DATA to a folder that holds it")
    data = load_iris() if "iris" in name else load_breast_cancer()
    train, test = (part.astype(np.float32) for part in train_test_split(data.data, test_size=0.3, random_state=0))
    assert agreement(lanner.compile(path, train), test) >= least
