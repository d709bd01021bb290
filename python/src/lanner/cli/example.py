"""Files to try the other commands with: the demo's network in ONNX, and digits."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

from lanner.cli.output import Output
from lanner.embedded import CALIBRATION_SAMPLES, require_scikit_learn
from lanner.errors import MisuseError
from lanner.files import check_target


def save_example(folder: Path, network: str, output: Output) -> int:
    """Write ``digits.onnx``, typical inputs for it, a digit that training did not see, and labelled ones.

    Raises:
        MisuseError: If scikit-learn is not installed, or the files cannot be written.
    """
    require_scikit_learn()
    from lanner.datasets import load_digits

    typical, (x, y) = load_digits("train")[0][:CALIBRATION_SAMPLES], load_digits("test")
    names = {
        "digits.onnx": "a network for handwritten digits",
        "inputs.npy": f"{len(typical)} digits to calibrate it with",
        "image.npy": f"one digit to classify, a {y[0]}",
        "labelled.npz": f"{len(x)} digits and what they are, to evaluate it",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            check_target(folder / name, MisuseError)
        (folder / "digits.onnx").write_bytes((files("lanner") / "networks" / f"{network}.onnx").read_bytes())
        np.save(folder / "inputs.npy", typical)
        np.save(folder / "image.npy", x[0])
        np.savez(folder / "labelled.npz", x=x, y=y)
    except OSError as error:
        raise MisuseError(
            f"the files cannot be written ({error.strerror})", where=str(folder), fix="give another folder"
        ) from None
    output.section(f"Written to {folder}", list(names.items()))
    output.document({"folder": str(folder), "files": list(names)})
    return 0
