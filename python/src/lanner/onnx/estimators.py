"""Exports fitted estimators by the converter that their owner has installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import MisuseError, ModelError
from lanner.extras import is_installed
from lanner.onnx.converters import register_converters

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
    converter = CONVERTERS[package]
    name = type(model).__name__
    if not is_installed(converter):
        raise MisuseError(f"{name} of {package} needs the package {converter}", fix=f"run pip install {converter}")
    if rows.ndim < 2:
        raise MisuseError(f"the calibration has shape {rows.shape}", fix="give rows of shape (n, columns)")
    try:
        return _EXPORTERS[package](model, rows)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"{converter} cannot export it ({' '.join(str(error).split())[:300]})",
            where=name,
            fix="fit it first, or export it to ONNX with another version of its converter",
        ) from error


def _of_sklearn(model: Any, rows: NDArray[np.float32]) -> onnx.ModelProto:  # noqa: ANN401 - untyped
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
    options = {id(last): {"zipmap": False}} if hasattr(last, "predict_proba") else None
    return _proto(skl2onnx.to_onnx(model, rows[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3}))


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
