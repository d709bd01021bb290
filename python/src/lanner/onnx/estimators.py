"""Exports fitted estimators by the converter that their owner has installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import MisuseError, ModelError, UnsupportedOpError
from lanner.extras import is_installed
from lanner.onnx.converters import register_converters
from lanner.tables import is_frame

#: The packages whose estimators are exported, and the converter of each, as both are imported and installed.
CONVERTERS: Mapping[str, str] = {
    "sklearn": "skl2onnx",
    "xgboost": "onnxmltools",
    "lightgbm": "onnxmltools",
    "catboost": "catboost",
}

#: Estimators of other packages that may be steps of scikit-learn's pipelines: package, class, converter's module.
_STEPS = (
    ("xgboost", "XGBClassifier", "onnxmltools.convert.xgboost.operator_converters.XGBoost", "convert_xgboost"),
    ("xgboost", "XGBRegressor", "onnxmltools.convert.xgboost.operator_converters.XGBoost", "convert_xgboost"),
    ("lightgbm", "LGBMClassifier", "onnxmltools.convert.lightgbm.operator_converters.LightGbm", "convert_lightgbm"),
    ("lightgbm", "LGBMRegressor", "onnxmltools.convert.lightgbm.operator_converters.LightGbm", "convert_lightgbm"),
)


def package_of(model: object) -> str | None:
    """The package whose fitted estimator a model is; None where it is none."""
    for kind in type(model).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in CONVERTERS and (hasattr(model, "predict") or hasattr(model, "decision_function")):
            return package
    return None


def export_estimator(model: Any, rows: NDArray[np.float32]) -> onnx.ModelProto:  # noqa: ANN401 - any package's
    """Export a fitted estimator of rows.

    Args:
        model: An estimator of scikit-learn, a pipeline of them, or one of XGBoost, LightGBM or CatBoost.
        rows: Samples of shape (n, columns).

    Raises:
        MisuseError: If its package's converter is not installed.
        ModelError: If that cannot export it, as when it is not fitted.
    """
    package = package_of(model) or ""
    if rows.ndim < 2:
        raise MisuseError(f"the calibration has shape {rows.shape}", fix="give rows of shape (n, columns)")
    return _exported(model, CONVERTERS[package], _EXPORTERS[package], rows)


def _exported(
    model: Any,  # noqa: ANN401 - any package's
    converter: str,
    export: Callable[[Any, Any], onnx.ModelProto],
    rows: NDArray[np.float32] | None,
) -> onnx.ModelProto:
    """What a converter makes of a model.

    Raises:
        MisuseError: If it is not installed.
        ModelError: If it fails.
    """
    package, name = package_of(model), type(model).__name__
    if not is_installed(converter):
        raise MisuseError(f"{name} of {package} needs the package {converter}", fix=f"run pip install {converter}")
    try:
        return export(model, rows)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"{converter} cannot export it ({' '.join(str(error).split())[:300]})",
            where=name,
            fix="fit it first, or export it to ONNX with another version of its converter",
        ) from error


def has_words(frame: object) -> bool:
    """Whether something is a data frame that has words in a column."""
    return is_frame(frame) and any(map(_is_worded, _columns_of(frame).values()))


def export_pipeline(model: Any, frame: object) -> onnx.ModelProto:  # noqa: ANN401 - any package's
    """Export a fitted pipeline of a data frame with words: each column is an input of its own.

    Raises:
        MisuseError: As `export_estimator`, or if it is no estimator of scikit-learn.
        ModelError: As `export_estimator`.
    """
    if package_of(model) != "sklearn":
        raise MisuseError(
            f"{type(model).__name__} cannot read words",
            where="calibration",
            fix="put it behind an encoder in a pipeline of scikit-learn",
        )
    columns = _columns_of(frame)

    def of_types(whole: bool) -> onnx.ModelProto:
        types = import_module("skl2onnx.common.data_types")

        def kind(column: Any) -> Any:  # noqa: ANN401 - untyped
            if _is_worded(column):
                return types.StringTensorType([None, 1])
            is_whole = whole and getattr(getattr(column, "dtype", None), "kind", "O") in "iu"
            return (types.Int64TensorType if is_whole else types.FloatTensorType)([None, 1])

        return _by_skl2onnx(model, initial_types=[(name, kind(column)) for name, column in columns.items()])

    def exported(_: Any, __: Any) -> onnx.ModelProto:  # noqa: ANN401 - untyped
        try:
            return of_types(whole=False)
        except (NotImplementedError, RuntimeError):
            # Categories that are whole numbers are read as such.
            return of_types(whole=True)

    return _exported(model, "skl2onnx", exported, None)


def _columns_of(frame: Any) -> dict[str, Any]:  # noqa: ANN401 - of any package
    return {str(name): frame[name] for name in frame.columns}


def _is_worded(column: Any) -> bool:  # noqa: ANN401 - of any package
    """Whether a column has words; numbers and truth values are none."""
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    return kind not in "biufc" and any(isinstance(each, str) for each in column)


def _of_sklearn(model: Any, rows: NDArray[np.float32]) -> onnx.ModelProto:  # noqa: ANN401 - untyped
    return _by_skl2onnx(model, X=rows[:1])


def _check_neighbours(model: Any) -> None:  # noqa: ANN401 - untyped
    """Refuse votes of neighbours that are not counted, by what they differ in: converters leave it out, or hide it.

    Raises:
        UnsupportedOpError: Naming the estimator and its parameter.
    """
    for _, step in getattr(model, "steps", [("", model)]):
        name = type(step).__name__
        if not name.startswith(("KNeighbors", "RadiusNeighbors")):
            continue
        wrong: str | None = None
        if name != "KNeighborsClassifier":
            wrong = "is computed by no protocol here"
        elif step.weights != "uniform":
            wrong = f"weighs votes by {step.weights}"
        elif (
            getattr(step, "effective_metric_", "euclidean") != "euclidean"
            or (step.metric_params or {}).get("w") is not None
        ):
            wrong = f"measures distances by {step.metric}, p={step.p} and metric_params={step.metric_params}"
        elif step.n_neighbors >= getattr(step, "n_samples_fit_", step.n_neighbors + 1):
            wrong = f"asks all {step.n_neighbors} rows"
        if wrong is not None:
            raise UnsupportedOpError(
                f"{name} {wrong}",
                where=name,
                fix="fit KNeighborsClassifier with uniform weights, Euclidean distances and fewer neighbours than rows",
            )


def _by_skl2onnx(model: Any, **samples: Any) -> onnx.ModelProto:  # noqa: ANN401 - untyped
    _check_neighbours(model)
    skl2onnx = import_module("skl2onnx")
    register_converters()
    for package, kind, module, convert in _STEPS:
        with suppress(ImportError, AttributeError):
            estimator = getattr(import_module(package), kind)
            shapes = import_module("skl2onnx.common.shape_calculator")
            classifies = kind.endswith("Classifier")
            shape = (
                "calculate_linear_classifier_output_shapes"
                if classifies
                else "calculate_linear_regressor_output_shapes"
            )
            skl2onnx.update_registered_converter(
                estimator,
                f"Lanner{kind}",
                getattr(shapes, shape),
                getattr(import_module(module), convert),
                options={"nocl": [True, False], "zipmap": [True, False, "columns"]} if classifies else None,
            )
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    # Without any options of its own, a classifier without probabilities gets one that it does not have.
    options = {id(last): {"zipmap": False} if hasattr(last, "predict_proba") else {}}
    return _proto(skl2onnx.to_onnx(model, options=options, target_opset={"": 17, "ai.onnx.ml": 3}, **samples))


def _by_onnxmltools(convert: str) -> Callable[[Any, NDArray[np.float32]], onnx.ModelProto]:
    def exported(model: Any, rows: NDArray[np.float32]) -> onnx.ModelProto:  # noqa: ANN401 - untyped
        types = import_module("onnxmltools.convert.common.data_types")
        initial = [("input", types.FloatTensorType([None, rows.shape[1]]))]
        zipmap = {"zipmap": False} if convert == "convert_lightgbm" else {}
        return _proto(getattr(import_module("onnxmltools"), convert)(model, initial_types=initial, **zipmap))

    return exported


def _of_catboost(model: Any, _: NDArray[np.float32]) -> onnx.ModelProto:  # noqa: ANN401 - untyped
    utils = import_module("catboost.utils")
    return onnx.load_model_from_string(utils.convert_to_onnx_object(model).SerializeToString())


def _proto(made: Any) -> onnx.ModelProto:  # noqa: ANN401 - untyped
    proto = onnx.ModelProto()
    proto.ParseFromString(made.SerializeToString())
    return proto


_EXPORTERS: Mapping[str, Callable[[Any, NDArray[np.float32]], onnx.ModelProto]] = {
    "sklearn": _of_sklearn,
    "xgboost": _by_onnxmltools("convert_xgboost"),
    "lightgbm": _by_onnxmltools("convert_lightgbm"),
    "catboost": _of_catboost,
}
