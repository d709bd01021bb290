"""Converters for estimators that skl2onnx cannot export, or exports wrongly; they are registered with it.

skl2onnx asks a converter for an estimator's nodes. These are for histogram gradient boosting, whose thresholds are
doubles, for classifiers that vote, and for trees that are calibrated by an isotonic regression.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import ModelError

#: What a converter is called with: skl2onnx's scope, operator and container.
_Converter = Callable[[Any, Any, Any], None]


def register_converters() -> None:
    """Register the converters with skl2onnx, in place of its own."""
    skl2onnx, ensemble = import_module("skl2onnx"), import_module("sklearn.ensemble")
    shapes = import_module("skl2onnx.common.shape_calculator")
    registration = import_module("skl2onnx.common._registration")
    # skl2onnx's own are registered when its operators are imported.
    import_module("skl2onnx.operator_converters")
    import_module("skl2onnx.shape_calculators")
    classifies = {"nocl": [True, False], "zipmap": [True, False, "columns"], "output_class_labels": [False, True]}
    skl2onnx.update_registered_converter(
        ensemble.HistGradientBoostingClassifier,
        "LannerHistGradientBoostingClassifier",
        shapes.calculate_linear_classifier_output_shapes,
        _boosted_classifier,
        options={**classifies, "raw_scores": [True, False]},
    )
    skl2onnx.update_registered_converter(
        ensemble.HistGradientBoostingRegressor,
        "LannerHistGradientBoostingRegressor",
        shapes.calculate_linear_regressor_output_shapes,
        _boosted_regressor,
    )
    for name in _TREES:
        own = f"Sklearn{name}"
        kept = registration._converter_pool[own]
        registration.register_converter(own, _with_missing(kept._fct), overwrite=True, options=kept._options)
    calibrated = import_module("sklearn.calibration").CalibratedClassifierCV
    changes = (
        (ensemble.VotingClassifier, _without_layout, classifies),
        (ensemble.VotingRegressor, _without_layout, None),
        (calibrated, _with_points, classifies),
    )
    for estimator, change, options in changes:
        own = f"Sklearn{estimator.__name__}"
        skl2onnx.update_registered_converter(
            estimator,
            f"Lanner{estimator.__name__}",
            registration.get_shape_calculator(own),
            _changed(registration.get_converter(own), change),
            options=options,
        )


#: Estimators whose trees say where missing numbers go, which skl2onnx leaves out.
_TREES = (
    *("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
    *("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    "IsolationForest",
)


def _with_missing(convert: _Converter) -> _Converter:
    """skl2onnx's converter, whose nodes send missing numbers where scikit-learn does."""

    def converted(scope: Any, operator: Any, container: Any) -> None:  # noqa: ANN401 - untyped
        before = len(container.nodes)
        convert(scope, operator, container)
        model = operator.raw_operator
        trees = [each.tree_ for each in getattr(model, "estimators_", [model])]
        for node in container.nodes[before:]:
            if node.op_type.startswith("TreeEnsemble"):
                _send_missing(node, trees, type(model).__name__)

    return converted


def _send_missing(node: Any, trees: list[Any], name: str) -> None:  # noqa: ANN401 - untyped
    """Say in a node of trees where missing numbers go in each of them.

    Raises:
        ModelError: If a tree of the node is none of these, or several that differ there.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    numbers = np.array(attributes["nodes_treeids"].ints)
    sends = attributes["nodes_missing_value_tracks_true"]
    found = np.zeros(len(numbers), np.int64)
    ids = np.unique(numbers)
    for place, number in enumerate(ids):
        rows = np.flatnonzero(numbers == number)
        column, left = (np.array(attributes[f"nodes_{key}"].ints)[rows] for key in ("featureids", "truenodeids"))
        values = np.array(attributes["nodes_values"].floats)[rows]
        # A node of all trees has them in their order; one of a single tree is found by its splits.
        among = [trees[place]] if len(ids) == len(trees) else trees
        alike = {
            tree.missing_go_to_left.astype(np.int64).tobytes()
            for tree in among
            if tree.node_count == len(rows) and _is_of(tree, column, left, values)
        }
        if len(alike) != 1:
            raise ModelError(
                "its trees are exported in another form than they have, so that missing numbers would go astray",
                where=name,
                fix="put a SimpleImputer in front of it",
            )
        found[rows] = np.frombuffer(alike.pop(), np.int64)
    del sends.ints[:]
    sends.ints.extend(found.tolist())


def _is_of(tree: Any, column: NDArray[Any], left: NDArray[Any], values: NDArray[Any]) -> bool:  # noqa: ANN401
    """Whether exported nodes are a tree's, by their columns, left children and thresholds, which are rounded."""
    splits = tree.children_left > np.arange(tree.node_count)
    return (
        np.array_equal(np.where(splits, tree.feature, 0), column)
        and np.array_equal(np.where(splits, tree.children_left, 0), left)
        and np.allclose(np.where(splits, tree.threshold, 0.0), values, rtol=1e-5, atol=1e-6)
    )


def _changed(convert: _Converter, change: Callable[[Any], Any]) -> _Converter:
    """skl2onnx's converter, of an estimator that is changed before."""

    def converted(scope: Any, operator: Any, container: Any) -> None:  # noqa: ANN401 - untyped
        model = operator.raw_operator
        operator.raw_operator = change(model)
        try:
            convert(scope, operator, container)
        finally:
            operator.raw_operator = model

    return converted


def _without_layout(model: Any) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    """A vote without what skl2onnx refuses: the layout of `transform`, and weights that are a list."""
    held = copy.copy(model)
    held.flatten_transform = False
    # Those that were dropped have no weight.
    weights = model._weights_not_none
    held.weights = None if weights is None else np.asarray(weights, np.float64)
    return held


def _with_points(model: Any) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    """A calibrated tree whose isotonic regressions have a point for each leaf.

    skl2onnx writes the nearest point's value, and scikit-learn draws lines between points: both are the same at points.
    """
    held = copy.copy(model)
    if model.method == "isotonic":
        held.calibrated_classifiers_ = [_pointed(each) for each in model.calibrated_classifiers_]
    return held


def _pointed(calibrated: Any) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    tree = getattr(calibrated.estimator, "tree_", None)
    if tree is None:
        # What several trees say together is refused later.
        return calibrated
    said = tree.value[tree.children_left < 0, 0, :]
    said = said / said.sum(axis=1, keepdims=True)
    # Of two classes the second one is calibrated.
    columns = said.T[-1:] if said.shape[1] == 2 else said.T
    made = copy.copy(calibrated)
    made.calibrators = []
    for calibrator, column in zip(calibrated.calibrators, columns, strict=True):
        pointed = copy.copy(calibrator)
        points = np.clip(np.unique(column), calibrator.X_min_, calibrator.X_max_)
        # The names that skl2onnx looks for first.
        pointed._X_, pointed._y_ = points, calibrator.predict(points)
        made.calibrators.append(pointed)
    return made


def _boosted_regressor(scope: Any, operator: Any, container: Any) -> None:  # noqa: ANN401 - untyped
    model = operator.raw_operator
    link = type(model._loss.link).__name__
    if link != "IdentityLink":
        raise ModelError(
            f"its loss {model.loss} makes a prediction the exponential of a sum of trees, which is not computed",
            where=type(model).__name__,
            fix="train it on the logarithm of the target with loss squared_error",
        )
    trees = _Trees(model)
    container.add_node(
        "TreeEnsembleRegressor",
        [operator.inputs[0].full_name],
        [operator.outputs[0].full_name],
        op_domain="ai.onnx.ml",
        op_version=1,
        name=scope.get_unique_operator_name("TreeEnsembleRegressor"),
        n_targets=1,
        **trees.attributes("target"),
    )


def _boosted_classifier(scope: Any, operator: Any, container: Any) -> None:  # noqa: ANN401 - untyped
    model = operator.raw_operator
    trees = _Trees(model)
    classes = model.classes_
    if scope.get_options(model, {"nocl": False})["nocl"]:
        classes = np.arange(len(classes))
    whole = classes.dtype.kind in "iub" or all(
        float(each).is_integer() for each in classes if classes.dtype.kind == "f"
    )
    if classes.dtype.kind in "iubf" and not whole:
        raise ModelError(
            "its classes are numbers that are not whole", where=type(model).__name__, fix="number them, or name them"
        )
    labels: dict[str, list[Any]] = (
        {"classlabels_int64s": [int(each) for each in classes]}
        if classes.dtype.kind in "iubf"
        else {"classlabels_strings": [str(each) for each in classes]}
    )
    raw = scope.get_options(model, {"raw_scores": False})["raw_scores"]
    transform = "LOGISTIC" if trees.scores == 1 else "SOFTMAX"
    container.add_node(
        "TreeEnsembleClassifier",
        [operator.inputs[0].full_name],
        [each.full_name for each in operator.outputs[:2]],
        op_domain="ai.onnx.ml",
        op_version=1,
        name=scope.get_unique_operator_name("TreeEnsembleClassifier"),
        post_transform="NONE" if raw else transform,
        **labels,
        **trees.attributes("class"),
    )


class _Trees:
    """The trees of a fitted model of histogram gradient boosting.

    Args:
        model: The model.

    Raises:
        ModelError: If its categories are words.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
        self._model = model
        self.scores = int(model.n_trees_per_iteration_)
        self._columns, self._categories = _columns(model)
        self._known = self._known_categories()
        self._nodes: dict[str, list[Any]] = {part: [] for part in _NODES}
        self._leaves: dict[str, list[Any]] = {part: [] for part in _LEAVES}
        every = [(score, tree) for trees in model._predictors for score, tree in enumerate(trees)]
        for number, (score, tree) in enumerate(every):
            self._add(number, score, tree)

    def attributes(self, leaves: str) -> dict[str, list[Any]]:
        """The node's lists; those of leaves begin with ``target`` or ``class``."""
        base = np.ravel(self._model._baseline_prediction)
        return {
            **{f"nodes_{part}": values for part, values in self._nodes.items()},
            **{f"{leaves}_{part}": values for part, values in self._leaves.items()},
            "base_values": [float(np.float32(each)) for each in base],
        }

    def _known_categories(self) -> dict[int, NDArray[np.uint32]]:
        """The bits of the categories that the training had, by the model's column."""
        bits, places = self._model._bin_mapper.make_known_categories_bitsets()
        return {column: bits[places[column]] for column in self._categories}

    def _add(self, tree: int, score: int, grown: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
        nodes = grown.nodes
        extra = len(nodes)
        for at, node in enumerate(nodes):
            if node["is_leaf"]:
                self._node(tree, at, 0, "LEAF", 0.0, 0, 0)
                for part, value in zip(_LEAVES, (tree, at, score, float(np.float32(node["value"]))), strict=True):
                    self._leaves[part].append(value)
                continue
            column, left, right = int(node["feature_idx"]), int(node["left"]), int(node["right"])
            missing = bool(node["missing_go_to_left"])
            if not node["is_categorical"]:
                threshold = _at_most(float(node["num_threshold"]))
                self._node(tree, at, self._columns[column], "BRANCH_LEQ", threshold, left, right, missing)
                continue
            # Missing and unknown categories go one way; those that go the other are asked for one by one.
            on_left = _members(grown.raw_left_cat_bitsets[int(node["bitset_idx"])])
            known = _members(self._known[column])
            asked = [each for each in known if (each in on_left) != missing]
            found, others = (right, left) if missing else (left, right)
            values = [float(self._categories[column][each]) for each in asked]
            if not values:
                self._node(tree, at, self._columns[column], "BRANCH_LEQ", 0.0, others, others, missing)
                continue
            extra = self._chain(tree, at, self._columns[column], values, found, others, extra)

    def _chain(
        self, tree: int, first: int, column: int, values: list[float], found: int, others: int, extra: int
    ) -> int:
        """Nodes that ask for each of some values; returns the next node's number."""
        places = [first, *range(extra, extra + len(values) - 1)]
        for value, place, following in zip(values, places, [*places[1:], others], strict=True):
            self._node(tree, place, column, "BRANCH_EQ", value, found, following)
        return extra + len(values) - 1

    def _node(
        self, tree: int, number: int, column: int, mode: str, value: float, yes: int, no: int, missing: bool = False
    ) -> None:
        row = (tree, number, column, mode, value, yes, no, int(missing))
        for part, held in zip(_NODES, row, strict=True):
            self._nodes[part].append(held)


_NODES = (
    *("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"),
    "missing_value_tracks_true",
)
_LEAVES = ("treeids", "nodeids", "ids", "weights")


def _columns(model: Any) -> tuple[list[int], Mapping[int, NDArray[Any]]]:  # noqa: ANN401 - scikit-learn is untyped
    """The input's column of each of the model's, and the categories of those that have some.

    Raises:
        ModelError: If categories are no numbers.
    """
    marked = model.is_categorical_
    if marked is None:
        return list(range(model.n_features_in_)), {}
    encoded = np.flatnonzero(marked).tolist()
    order = [*encoded, *np.flatnonzero(~np.asarray(marked)).tolist()]
    found = model._preprocessor.named_transformers_["encoder"].categories_
    if any(each.dtype.kind not in "iufb" for each in found):
        raise ModelError(
            "its categories are words, and a table of floats is exported", where=type(model).__name__, fix="number them"
        )
    return order, dict(enumerate(found))


def _members(bits: NDArray[np.uint32]) -> list[int]:
    return np.flatnonzero(np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little")).tolist()


def _at_most(threshold: float) -> float:
    """The largest float32 that is at most a threshold: a float32 is at most either, or neither."""
    with np.errstate(over="ignore"):
        rounded = np.float32(threshold)
    if float(rounded) > threshold:
        rounded = np.nextafter(rounded, np.float32(-np.inf))
    return float(rounded)
