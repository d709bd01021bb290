"""Names of the columns of a row that no tree reads: a scaler and layers. Swapped columns are no silent mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import lanner
from helpers.heads import network, rows
from helpers.models import save_model
from helpers.processes import lanner as command
from helpers.processes import serving

WIDTH = rows(1).shape[1]
NAMES = [f"column {index}" for index in range(WIDTH)]


def as_csv(values: NDArray[np.float32], names: list[str]) -> str:
    return "\n".join([",".join(names), *(",".join(map(repr, map(float, row))) for row in values)]) + "\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of dense layers, compiled from a table with a header that names its columns."""
    folder = tmp_path_factory.mktemp("row")
    save_model(folder / "net.onnx", network(3, "Softmax"))
    (folder / "typical.csv").write_text(as_csv(rows(), NAMES))
    asked = ("compile", folder / "net.onnx", "-o", folder / "net.lanner", "--calibration", folder / "typical.csv")
    done = command(*asked, "--columns", folder / "typical.csv")
    assert done.code == 0, done.errors
    return folder / "net.lanner"


def test_columns_are_found_by_name_wherever_they_stand(compiled: Path, tmp_path: Path) -> None:
    model, x = lanner.load(compiled), rows(4, seed=9)
    assert model.manifest.document["format_version"] == 7
    assert model.manifest.document["columns"] == NAMES
    turned = [*range(1, WIDTH), 0]
    (tmp_path / "same.csv").write_text(as_csv(x, NAMES))
    (tmp_path / "turned.csv").write_text(as_csv(x[:, turned], [NAMES[index] for index in turned]))
    (tmp_path / "plain.csv").write_text(as_csv(x, NAMES).partition("\n")[2])
    objects = [dict(zip(NAMES, map(float, row), strict=True)) for row in x]
    (tmp_path / "objects.json").write_text(json.dumps(objects))
    expected = model.predict_fixed(x).argmax(1).tolist()
    with serving(tmp_path / "state", compiled) as server:
        for name in ("same.csv", "turned.csv", "plain.csv", "objects.json"):
            done = command("predict", server.address, tmp_path / name, *server.pin)
            assert done.code == 0, done.errors
            assert [each["label"] for each in done.document["predictions"]] == expected, name
        (tmp_path / "wrong.csv").write_text(as_csv(x, ["weight", *NAMES[1:]]))
        wrong = command("predict", server.address, tmp_path / "wrong.csv", *server.pin)
        assert wrong.code == 6
        assert NAMES[0] in wrong.document["error"]["what"]
        (tmp_path / "hole.csv").write_text(as_csv(x, NAMES).replace(repr(float(x[0, 1])), "", 1))
        assert command("predict", server.address, tmp_path / "hole.csv", *server.pin).code == 6


def test_a_data_frame_names_them_in_python() -> None:
    pandas = pytest.importorskip("pandas")
    x = rows(4, seed=9)
    model = lanner.compile(network(3, "Softmax"), pandas.DataFrame(rows(), columns=NAMES), name="net")
    assert [column.name for column in model.manifest.input.columns] == NAMES
    frame = pandas.DataFrame(x, columns=NAMES)
    assert (model.predict_fixed(frame[NAMES[::-1]]) == model.predict_fixed(x)).all()
    plain = lanner.compile(network(3, "Softmax"), rows(), name="net")
    assert "columns" not in plain.manifest.document
    assert plain.manifest.document["format_version"] == 4


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("a,b", "2 columns are named"),
        (",".join([*NAMES[1:], NAMES[1]]), "is there twice"),
        ([{"name": name, "missing": True} for name in NAMES], "only columns that trees read"),
    ],
)
def test_what_names_no_row_is_refused(columns: object, said: str) -> None:
    with pytest.raises(lanner.MisuseError, match=said):
        lanner.compile(network(3, "Softmax"), rows(), columns=columns)  # type: ignore[arg-type]
