"""Every notebook in examples/notebooks runs from its first cell to its last, and is kept without outputs.

No kernel takes part: the cells are run as one program in one namespace, so that what only Jupyter understands, such as
``!command``, would fail here. Values that a kernel would show are computed and not shown.
"""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import ast
import json
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from helpers.times import marked

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

stem_of = attrgetter("stem")

RUNNER = """
import json, sys
namespace = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
"""


def read(notebook: Path) -> dict[str, Any]:
    return dict(json.loads(notebook.read_text(encoding="utf-8")))


def run(notebook: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUNNER, str(notebook)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_there_are_notebooks() -> None:
    assert {notebook.stem for notebook in NOTEBOOKS} >= {"quick-start", "your-own-model", "comparing-modes"}


@pytest.mark.parametrize("notebook", marked(NOTEBOOKS, {"comparing-modes", "your-own-model"}, stem_of), ids=stem_of)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANNER_HOME", str(tmp_path / "state"))
    done = run(notebook, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_whole_and_without_outputs(notebook: Path) -> None:
    document = read(notebook)
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"]["language_info"] == {"name": "python"}
    cells = document["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert cells[0]["cell_type"] == "markdown"
    for cell in cells:
        assert set(cell["metadata"]) == set()
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_asserts_what_it_says(notebook: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in read(notebook)["cells"] if cell["cell_type"] == "code")
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code)))


def test_a_cell_that_fails_is_told(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "id": f"cell-{number}", "source": [text]}
        for number, text in enumerate(("a = 1", "assert a == 2"))
    ]
    broken = tmp_path / "broken.ipynb"
    broken.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    done = run(broken, tmp_path)
    assert done.returncode == 1
    assert 'File "cell-1"' in done.stderr
