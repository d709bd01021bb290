"""How good a classifier's probabilities are, and one temperature that makes them better.

[GPSW17] "On Calibration of Modern Neural Networks", https://proceedings.mlr.press/v70/guo17a.html: expected
calibration error (equation 3) and temperature scaling (section 4.2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

BINS = 15
"""Of equal width in the confidence, as in the paper's tables."""


def expected_calibration_error(logits: Tensor, y: Tensor) -> float:
    """The mean gap between confidence and accuracy over bins of confidence.

    Args:
        logits: ``(n, classes)``.
        y: Labels ``(n,)``.
    """
    confidence, label = logits.softmax(dim=1).max(dim=1)
    correct = (label == y).float()
    place = (confidence * BINS).long().clamp(max=BINS - 1)
    gaps = [(confidence - correct)[place == index].sum().abs() for index in range(BINS)]
    return float(torch.stack(gaps).sum() / len(y))


def fit_temperature(logits: Tensor, y: Tensor) -> float:
    """The temperature T for which softmax(logits / T) has the smallest cross entropy on labels ``y``.

    Cross entropy is convex in 1/T, so the zero of its derivative is found by halving.

    Args:
        logits: ``(n, classes)``.
        y: Labels ``(n,)``.
    """
    z = logits.double()
    target = z.gather(1, y[:, None]).mean()
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = (low * high) ** 0.5
        slope = ((z * middle).softmax(dim=1) * z).sum(dim=1).mean() - target
        low, high = (low, middle) if slope > 0 else (middle, high)
    return 1 / low


def fold_temperature(model: nn.Sequential, temperature: float) -> None:
    """Divide the last layer's weights and bias by ``temperature``: the network's labels stay as they are."""
    last = model[-1]
    if not isinstance(last, nn.Linear):
        raise TypeError(f"the last layer is {type(last).__name__}, not Linear")
    with torch.no_grad():
        last.weight /= temperature
        last.bias /= temperature
