"""The four MNIST networks of the GAZELLE evaluation, one for chest X-rays and two of LoLa's, as PyTorch modules.

[JVC18] section VIII-A, https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar. These and the one for
X-rays take ``(batch, 1, 28, 28)`` pixels in [0, 1] and return logits: ``(batch, 10)`` for digits, ``(batch, 2)`` for
X-rays.

[BEG19] sections 5 and 6, https://proceedings.mlr.press/v97/brutzkus19a.html. LoLa-MNIST is ``b``. LoLa-CIFAR takes
``(batch, 3, 32, 32)`` pixels in [0, 1] and returns logits ``(batch, 10)``. Of both there is one with a circulant layer.
"""

from __future__ import annotations

from circulant import make_circulant
from torch import Tensor, nn

MNIST_BLOCK = 8
CIFAR_BLOCK = 16
"""The sides of the circulant blocks of [LLJ20]'s two networks."""


class Square(nn.Module):
    """The activation x * x."""

    def forward(self, x: Tensor) -> Tensor:
        """Square every element of ``x``, of any shape."""
        return x * x


def network(name: str) -> nn.Sequential:
    """Build the network of this name, a key of ``_LAYERS``, with PyTorch's random weights."""
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


def _one_convolution_circulant() -> list[nn.Module]:
    layers = _one_convolution(Square)
    make_circulant(layers[3], MNIST_BLOCK)
    return layers


def _lola_cifar() -> list[nn.Module]:
    # Squares of what a batch normalisation gives stay small. It is folded into weights before the network is written.
    return [
        nn.Conv2d(3, 83, 8, stride=2, padding=1, bias=False), nn.BatchNorm2d(83), Square(),
        nn.Conv2d(83, 163, 6, stride=2, bias=False), nn.BatchNorm2d(163), Square(),
        nn.Flatten(),
        nn.Linear(4075, 10),
    ]  # fmt: skip


def _lola_cifar_circulant() -> list[nn.Module]:
    layers = _lola_cifar()
    make_circulant(layers[3], CIFAR_BLOCK)
    return layers


_LAYERS = {
    "a": _fully_connected,
    "b": lambda: _one_convolution(Square),
    "c": lambda: _one_convolution(nn.ReLU),
    "b_circulant": _one_convolution_circulant,
    "d": _two_convolutions,
    "pneumonia": _chest_x_ray,
    "cifar": _lola_cifar,
    "cifar_circulant": _lola_cifar_circulant,
}
