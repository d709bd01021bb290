"""The networks that come with the package, compiled on the digits that scikit-learn carries."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Unpack

from lanner.extras import require
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.network import LOOPBACK
from lanner.options import CompileKeywords

#: Calibration looks at extremes alone, which this many digits settle.
CALIBRATION_SAMPLES = 256


def compile_embedded(embedded: str, **options: Unpack[CompileKeywords]) -> Model:
    """Compile an embedded network, calibrated on digits that training may see.

    Args:
        embedded: ``mnist_a`` to ``mnist_d``.
        options: As for `lanner.compile`; the network is loopback where it is not given, for both parties of a demo are
            on one machine.

    Raises:
        MisuseError: If scikit-learn or onnx is not installed.
    """
    require_scikit_learn()
    from lanner.datasets import load_digits

    calibration = load_digits("train")[0][:CALIBRATION_SAMPLES]
    options["name"], options["classes"] = embedded, [str(digit) for digit in range(10)]
    options.setdefault("network", LOOPBACK)
    with as_file(files("lanner") / "networks" / f"{embedded}.onnx") as path:
        return compile(path, calibration, **options)


def require_scikit_learn() -> None:
    """Check that the digits are there.

    Raises:
        MisuseError: If scikit-learn is not installed.
    """
    require("sklearn", "loading the digits", "onnx", "demo")
