"""The networks that come with the package, compiled on the digits that scikit-learn carries."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from lanner.extras import require
from lanner.kernel_times import KernelTimes
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.network import LOOPBACK, Network

#: Calibration looks at extremes alone, which this many digits settle.
CALIBRATION_SAMPLES = 256


def compile_embedded(
    name: str,
    mode: str = "auto",
    output: str | None = None,
    rounding: str | None = None,
    precision: str | int | None = None,
    kept_bits: int | None = None,
    network: str | Network = LOOPBACK,
    batch: int = 1,
    kernel_times: str | Path | KernelTimes | None = None,
) -> Model:
    """Compile an embedded network, calibrated on digits that training may see.

    Args:
        name: ``mnist_a`` to ``mnist_d``.
        mode: As for `lanner.compile`.
        output: As for `lanner.compile`.
        rounding: As for `lanner.compile`.
        precision: As for `lanner.compile`.
        kept_bits: As for `lanner.compile`.
        network: As for `lanner.compile`; loopback where it is not given, for both parties of a demo are on one machine.
        batch: As for `lanner.compile`.
        kernel_times: As for `lanner.compile`.

    Raises:
        MisuseError: If scikit-learn or onnx is not installed.
    """
    require_scikit_learn()
    from lanner.datasets import load_digits

    calibration = load_digits("train")[0][:CALIBRATION_SAMPLES]
    classes = [str(digit) for digit in range(10)]
    with as_file(files("lanner") / "networks" / f"{name}.onnx") as path:
        return compile(
            path,
            calibration,
            mode=mode,
            output=output,
            classes=classes,
            name=name,
            rounding=rounding,
            precision=precision,
            kept_bits=kept_bits,
            network=network,
            batch=batch,
            kernel_times=kernel_times,
        )


def require_scikit_learn() -> None:
    """Check that the digits are there.

    Raises:
        MisuseError: If scikit-learn is not installed.
    """
    require("sklearn", "loading the digits", "onnx", "demo")
