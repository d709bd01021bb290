"""Trains the pneumonia network, sets its temperature, and writes it as ONNX. Not for clinical use.

    python models/train_pneumonia.py --data DIR/pneumoniamnist.npz --output models/pneumonia.onnx

The network learns from the training split. The validation split sets one number, the temperature, which goes into
the last layer so that softmax of the logits is a probability. The test split is looked at for the last lines alone.
Needs models/requirements.txt; nothing else in the project needs it.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import onnx
import torch
from augment import augment
from export import to_onnx
from fitting import add_options, fit, print_magnitudes
from networks import network
from pneumoniamnist import load_pneumonia
from reliability import expected_calibration_error, fit_temperature, fold_temperature
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

LABEL_SMOOTHING = 0.05


def main() -> None:
    """Parse the command line, train, set the temperature, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="pneumoniamnist.npz")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    add_options(parser, epochs=40, batch=64, rate=3e-3, decay=2e-2)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    train, validation, test = (read(options.data, split) for split in ("train", "val", "test"))
    model = network("pneumonia")
    # What comes in from outside goes on as the border did: no black edge tells that an X-ray was moved.
    moved = partial(augment, outside="border")
    fit(model, *train, options, augment=moved, smoothing=LABEL_SMOOTHING)
    report("as trained", model, validation, test)
    temperature = fit_temperature(logits_of(model, validation[0]), validation[1])
    fold_temperature(model, temperature)
    report(f"with temperature {temperature:.3f}", model, validation, test)
    print_magnitudes(model, test[0])
    onnx.save(to_onnx(model, "pneumonia"), options.output)


def read(path: Path, split: str) -> tuple[Tensor, Tensor]:
    """A split as tensors: pixels ``(n, 1, 28, 28)`` and labels ``(n,)``."""
    x, y = load_pneumonia(path, split)
    return torch.from_numpy(x), torch.from_numpy(y)


def logits_of(model: nn.Sequential, x: Tensor) -> Tensor:
    """The logits ``(n, 2)`` of ``x``."""
    with torch.no_grad():
        return model(x)


def report(title: str, model: nn.Sequential, validation: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> None:
    """Print area under the curve, accuracy and calibration error of both splits."""
    print(title)
    for split, (x, y) in {"validation": validation, "test": test}.items():
        logits = logits_of(model, x)
        area = roc_auc_score(y, logits[:, 1] - logits[:, 0])
        accuracy = float((logits.argmax(dim=1) == y).float().mean())
        error = expected_calibration_error(logits, y)
        print(f"  {split}, {len(y)} images: AUC {area:.4f}, accuracy {accuracy:.2%}, calibration error {error:.4f}")


if __name__ == "__main__":
    main()
