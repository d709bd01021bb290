"""The four MNIST networks of the GAZELLE evaluation and one for chest X-rays, as PyTorch modules.

[JVC18] section VIII-A, https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar. Every network
takes ``(batch, 1, 28, 28)`` pixels in [0, 1] and returns logits: ``(batch, 10)`` for digits, ``(batch, 2)`` for X-rays.
"""

from __future__ import annotations

from torch import Tensor, nn


class Square(nn.Module):
    """The activation x * x."""

    def forward(self, x: Tensor) -> Tensor:
        """Square every element of ``x``, of any shape."""
        return x * x


def network(name: str) -> nn.Sequential:
    """Build network ``a``, ``b``, ``c``, ``d`` or ``pneumonia`` with PyTorch's random weights."""
    return nn.Sequential(*_LAYERS[name]())


def _fully_connected() -> list[nn.Module]:
    return [
        nn.Flatten(),
        nn.Linear(784, 128), Square(),
        nn.Linear(128, 128), Square(),
        nn.Linear(128, 10),
    ]  # fmt: skip


def _one_convolution(activation: type[nn.Module]) -> list[nn.Module]:
    # Padding 1 and stride 2 give 13 x 13, the paper's 845 values; the last padded row and column stay unread.
    return [
        nn.Conv2d(1, 5, 5, stride=2, padding=1), activation(),
        nn.Flatten(),
        nn.Linear(845, 100), activation(),
        nn.Linear(100, 10),
    ]  # fmt: skip


def _two_convolutions() -> list[nn.Module]:
    return [
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 100), nn.ReLU(),
        nn.Linear(100, 10),
    ]  # fmt: skip


def _chest_x_ray() -> list[nn.Module]:
    return [
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(784, 32), nn.ReLU(),
        nn.Linear(32, 2),
    ]  # fmt: skip


_LAYERS = {
    "a": _fully_connected,
    "b": lambda: _one_convolution(Square),
    "c": lambda: _one_convolution(nn.ReLU),
    "d": _two_convolutions,
    "pneumonia": _chest_x_ray,
}
