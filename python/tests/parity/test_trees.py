"""Trees decide as onnxruntime and their own libraries do, for every number on a column's grid and at its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import lanner
from helpers.tree_models import MODES, Drawn
from lanner.errors import InputError, MisuseError, ModelError, UnsupportedOpError
from lanner.reference import open_exactly

COLUMNS = 4

#: Numbers beyond the ends are asked on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::lanner.TableWarning")


def _samples(rng: np.random.Generator, kind: str, count: int = 64) -> NDArray[np.float32]:
    """Rows of whole numbers, of decimals, of any numbers, or of whole numbers beyond those that float32 tells apart."""
    size = (count, COLUMNS)
    if kind == "whole":
        return rng.integers(-20, 90, size).astype(np.float32)
    if kind == "decimals":
        return np.round(rng.normal(0, 30, size), 2).astype(np.float32)
    if kind == "any":
        return rng.normal(0, 1, size).astype(np.float32)
    return rng.integers(2**24, 2**29, size).astype(np.float32)


def _thresholds(rows: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """What nodes compare with: numbers of the samples, numbers between two, and numbers beyond all."""
    found = []
    for column in rows.T:
        known = np.unique(column)
        between = (known[1:] + known[:-1]) / np.float32(2)
        found.append(np.concatenate([known, between, [known[0] - 1000, known[-1] * 8 + 1000]]).astype(np.float32))
    return found


def _edges(rng: np.random.Generator, rows: NDArray[np.float32], numbers: list[NDArray[np.float32]]) -> NDArray[Any]:
    """Rows that equal thresholds on the grid, the samples, and infinities."""
    drawn = rows[rng.integers(len(rows), size=rows.shape), np.arange(rows.shape[1])]
    near = np.stack(
        [rng.choice(np.intersect1d(column, known), len(rows)) for column, known in zip(numbers, rows.T, strict=True)], 1
    )
    far = np.where(rng.random(rows.shape) < 0.2, np.where(rng.random(rows.shape) < 0.5, np.inf, -np.inf), drawn)
    return np.concatenate([rows, drawn, near, far]).astype(np.float32)


def _scores(model: onnx.ModelProto, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    session = open_exactly(model)
    values = session.run(["y"], {"x": rows})[0]
    return np.asarray(values, np.float64).reshape(len(rows), -1)


def _check(model: onnx.ModelProto, rows: NDArray[np.float32], asked: NDArray[np.float32], mode: str = "auto") -> None:
    compiled = lanner.compile(model, rows, mode=mode, output="value")
    expected = _scores(model, asked)
    found = compiled.predict_fixed(asked)
    assert np.abs(found - expected).max() < 1e-5 * max(1.0, np.ptp(expected))


@pytest.mark.parametrize("kind", ["whole", "decimals", "any", "large"])
@pytest.mark.parametrize("seed", range(4))
def test_every_mode_of_a_branch_decides_as_onnxruntime_does(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = _samples(rng, kind)
    numbers = _thresholds(rows)
    # A threshold beyond the grid's ends is one decision for all numbers up to there, and for those beyond.
    inner = [column[np.abs(column) < 1e3] if kind != "large" else column[:-2] for column in numbers]
    drawn = Drawn(rng, inner, targets=1 + seed % 2, trees=4, depth=2 + seed)
    _check(drawn.regressor(COLUMNS), rows, _edges(rng, rows, inner))


@pytest.mark.parametrize("seed", range(4))
def test_missing_numbers_go_the_way_that_the_file_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = _samples(rng, ("whole", "any")[seed % 2])
    numbers = _thresholds(rows)
    modes = MODES if seed < 2 else ("BRANCH_LT",)
    drawn = Drawn(rng, numbers, trees=4, depth=4, modes=modes, missing=True)
    holes = rows.copy()
    # The last column never lacks one.
    holes[:, :-1][rng.random((len(rows), COLUMNS - 1)) < 0.3] = np.nan
    _check(drawn.regressor(COLUMNS, base_values=[0.25]), holes, holes)


def test_a_column_that_no_sample_lacks_takes_no_missing_number() -> None:
    rng = np.random.default_rng(0)
    rows = _samples(rng, "whole")
    compiled = lanner.compile(Drawn(rng, _thresholds(rows)).regressor(COLUMNS), rows)
    rows[3, 2] = np.nan
    with pytest.raises(InputError, match="missing"):
        compiled.predict_fixed(rows)


def test_deep_trees_have_secret_ways() -> None:
    rng = np.random.default_rng(5)
    rows = _samples(rng, "decimals")
    numbers = _thresholds(rows)
    model = Drawn(rng, numbers, trees=3, depth=7, modes=("BRANCH_LEQ",)).regressor(COLUMNS)
    deep = lanner.compile(model, rows, output="value")
    assert np.abs(deep.predict_fixed(rows) - _scores(model, rows)).max() < 1e-5


def test_version_five_of_the_operator_is_read() -> None:
    rng = np.random.default_rng(6)
    rows = _samples(rng, "whole")
    drawn = Drawn(rng, _thresholds(rows), trees=3, depth=3)
    _check(drawn.ensemble(COLUMNS), rows, rows)


@pytest.mark.parametrize(("labels", "transform"), [([0, 1, 2], "SOFTMAX"), (["a", "b", "c"], "NONE")])
def test_classes_have_their_names_and_labels(labels: list[Any], transform: str) -> None:
    rng = np.random.default_rng(7)
    rows = _samples(rng, "whole")
    model = Drawn(rng, _thresholds(rows), targets=3).classifier(COLUMNS, labels, transform)
    compiled = lanner.compile(model, rows)
    assert (compiled.manifest.output, compiled.manifest.classes) == ("label", tuple(map(str, labels)))
    session = open_exactly(model)
    expected = [labels.index(label) for label in session.run(["label"], {"x": rows})[0].tolist()]
    assert compiled.predict_fixed(rows).argmax(1).tolist() == expected


@pytest.mark.parametrize("transform", ["LOGISTIC", "NONE"])
def test_two_classes_of_one_score_are_labelled_as_onnxruntime_labels_them(transform: str) -> None:
    rng = np.random.default_rng(8)
    rows = _samples(rng, "whole")
    model = Drawn(rng, _thresholds(rows)).classifier(COLUMNS, [0, 1], transform)
    compiled = lanner.compile(model, rows)
    expected = open_exactly(model).run(["label"], {"x": rows})[0]
    assert compiled.predict_fixed(rows).argmax(1).tolist() == expected.tolist()


@pytest.mark.parametrize("labels", [[3, 5, 9], [0, 1]], ids=["three scores", "one score"])
@pytest.mark.parametrize("transform", ["PROBIT", "SOFTMAX_ZERO"])
def test_transforms_that_are_not_computed_leave_the_label(labels: list[int], transform: str) -> None:
    rng = np.random.default_rng(16)
    rows = _samples(rng, "whole")
    model = Drawn(rng, _thresholds(rows), targets=3 if len(labels) == 3 else 1).classifier(COLUMNS, labels, transform)
    compiled = lanner.compile(model, rows)
    expected = open_exactly(model).run(["label"], {"x": rows})[0]
    assert [labels[at] for at in compiled.predict_fixed(rows).argmax(1)] == expected.tolist()
    with pytest.raises(MisuseError, match="by the transform PROBIT or SOFTMAX_ZERO"):
        lanner.compile(model, rows, output="probability")
    with pytest.raises(UnsupportedOpError, match=f"its final {transform} is not computed"):
        lanner.compile(model, rows, output="value")


@pytest.mark.parametrize("mode", lanner.options.MODES)
def test_both_parties_compute_what_the_reference_does(mode: str) -> None:
    rng = np.random.default_rng(9)
    rows = _samples(rng, "whole")
    model = Drawn(rng, _thresholds(rows), depth=3).classifier(COLUMNS, [0, 1], "LOGISTIC")
    if mode == "spectral":
        with pytest.raises(UnsupportedOpError, match="mode spectral cannot compute Trees"):
            lanner.compile(model, rows, mode=mode, output="logits")
        return
    if mode == "hardened":
        with pytest.raises(UnsupportedOpError, match="mode hardened"):
            lanner.compile(model, rows, mode=mode, output="logits")
        return
    compiled = lanner.compile(model, rows, mode=mode, output="logits")
    (expected,), _ = compiled.predict_integers(rows[:1])
    assert lanner.run(compiled, rows[0]).integers == expected.tolist()


def test_trees_that_name_one_another_in_a_circle_are_refused() -> None:
    rng = np.random.default_rng(10)
    rows = _samples(rng, "whole")
    for threshold in (0.0, 1e30):
        drawn = Drawn(rng, _thresholds(rows), trees=1, depth=2, modes=("BRANCH_LEQ",))
        drawn.nodes["nodes_values"][0] = threshold
        drawn.nodes["nodes_truenodeids"][0] = 0
        with pytest.raises(ModelError, match="circle"):
            lanner.compile(drawn.regressor(COLUMNS), rows)


def test_what_a_file_says_of_trees_must_fit() -> None:
    rng = np.random.default_rng(11)
    rows = _samples(rng, "whole")

    def refused(match: str, **changed: Any) -> None:  # noqa: ANN401 - an attribute's value
        drawn = Drawn(rng, _thresholds(rows), trees=1, depth=2)
        model = drawn.regressor(COLUMNS)
        for name, value in changed.items():
            kept = [entry for entry in model.graph.node[0].attribute if entry.name != name]
            del model.graph.node[0].attribute[:]
            model.graph.node[0].attribute.extend([*kept, onnx.helper.make_attribute(name, value)])
        with pytest.raises(ModelError, match=match):
            lanner.compile(model, rows)

    refused("different lengths", target_ids=[0])
    refused("n_targets of TreeEnsembleRegressor is 100000000000", n_targets=10**11)
    refused("has a NaN", nodes_values=[float("nan")] * 7)
    refused("different lengths", nodes_values=[0.0])


def test_a_tree_deeper_than_any_is_refused() -> None:
    rng = np.random.default_rng(12)
    rows = _samples(rng, "whole")
    drawn = Drawn(rng, _thresholds(rows), trees=1, depth=1)
    count = 600
    for part, values in {
        "treeids": [0] * (2 * count + 1),
        "nodeids": list(range(2 * count + 1)),
        "featureids": [0] * (2 * count + 1),
        "modes": ["BRANCH_LEQ", "LEAF"] * count + ["LEAF"],
        "values": [0.0] * (2 * count + 1),
        "truenodeids": [2 * (at // 2) + 2 if at % 2 == 0 and at < 2 * count else 0 for at in range(2 * count + 1)],
        "falsenodeids": [at + 1 if at % 2 == 0 and at < 2 * count else 0 for at in range(2 * count + 1)],
    }.items():
        drawn.nodes[f"nodes_{part}"] = values
    drawn.missing = [0] * (2 * count + 1)
    drawn.leaves = [(0, 2 * count, 0, 1.0)]
    with pytest.raises(ModelError, match="more than 512 questions"):
        lanner.compile(drawn.regressor(COLUMNS), rows)


def test_a_chain_of_equalities_copies_no_subtrees() -> None:
    """As one-hot columns and categories make it: what a way says of a column settles later questions about it."""
    rows = np.random.default_rng(13).integers(0, 2, (64, COLUMNS)).astype(np.float32)
    drawn = Drawn(np.random.default_rng(14), [np.ones(1, np.float32)] * COLUMNS, trees=2, depth=8, modes=MODES[4:])
    compiled = lanner.compile(drawn.regressor(COLUMNS), rows, output="value")
    assert np.abs(compiled.predict_fixed(rows) - _scores(drawn.regressor(COLUMNS), rows)).max() < 1e-5
    nodes = next(node for node in compiled.manifest.document["network"]["nodes"] if node["name"].endswith("_compared"))
    # Four columns of zeros and ones have sixteen rows, and beyond the ends there are two codes more of each.
    assert nodes["shape"][0] <= 2 * (4**COLUMNS - 1)


def test_numbers_that_are_no_decimals_count_as_their_nearest_code() -> None:
    rows = np.array([[0, 0], [123456.25, 1], [4000000.25, 2], [4999999.5, 3]], np.float32)
    drawn = Drawn(np.random.default_rng(15), [np.full(1, 1234567.5, np.float32)] * 2, trees=1, depth=1, modes=MODES[:1])
    drawn.nodes["nodes_featureids"][0] = 0
    model = drawn.regressor(2)
    asked = np.array([[1234567.5, 0], [1234500.0, 0], [1234600.0, 0]], np.float32)
    compiled = lanner.compile(model, rows, output="value")
    assert np.abs(compiled.predict_fixed(asked) - _scores(model, asked)).max() < 1e-5
