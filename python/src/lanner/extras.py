"""Packages that only parts of lanner need: what each is for, and how to get one that is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from lanner.errors import MisuseError

#: What the package's extras add, by the names that pip knows.
EXTRAS = {
    "onnx": ("onnx", "onnxruntime"),
    "demo": ("scikit-learn",),
    "train": ("onnx", "onnxruntime", "scikit-learn", "skl2onnx"),
    "plots": ("matplotlib",),
    "gateway": ("fastapi", "uvicorn"),
    "otel": ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
    "ray": ("ray[data]",),
}


@dataclass(frozen=True, slots=True)
class Optional:
    """A package that may be missing.

    Attributes:
        extra: The extra that adds it.
        purpose: What it is for.
        distribution: The name that pip knows.
    """

    extra: str
    purpose: str
    distribution: str


#: Such packages by the names that they are imported by.
OPTIONAL = {
    "onnx": Optional("onnx", "compiling models", "onnx"),
    "onnxruntime": Optional("onnx", "comparing a new model with its float network", "onnxruntime"),
    "sklearn": Optional("demo", "the digits of the demo", "scikit-learn"),
    "skl2onnx": Optional("train", "exporting models from scikit-learn", "skl2onnx"),
    "matplotlib": Optional("plots", "plots: --html and --plot", "matplotlib"),
    "fastapi": Optional("gateway", "lanner gateway", "fastapi"),
    "uvicorn": Optional("gateway", "lanner gateway", "uvicorn"),
    "opentelemetry.sdk": Optional("otel", "traces of servers and gateways", "opentelemetry-sdk"),
    "opentelemetry.exporter": Optional("otel", "sending traces", "opentelemetry-exporter-otlp-proto-http"),
    "ray": Optional("ray", "many predictions: --ray", "ray[data]"),
}


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def require(package: str, user: str, *extras: str) -> None:
    """Check that a package is there.

    Args:
        package: The name that it is imported by.
        user: What needs it, at the beginning of a sentence.
        extras: The extras that add what else is needed; the package's own where none is given.

    Raises:
        MisuseError: If it is not.
    """
    if not is_installed(package):
        raise MisuseError(f"{user} needs the package {package}", fix=advice(*(extras or (OPTIONAL[package].extra,))))


def advice(*extras: str) -> str:
    """The command that installs what extras add. It is right wherever lanner itself came from, a file or an index."""
    packages = dict.fromkeys(package for extra in extras for package in EXTRAS[extra])
    # Brackets mean something to some shells.
    names = " ".join(f"'{package}'" if "[" in package else package for package in packages)
    return f"run pip install {names}, which is what lanner[{','.join(extras)}] adds"
