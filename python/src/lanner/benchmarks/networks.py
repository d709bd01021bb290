"""Whole networks: those that come with the package, CIFAR's where a folder of data holds them, and drawn ones."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.benchmarks.drawn import cryptonets_graph, delphi_resnet32_graph, minionn_graph, resnet_graph
from lanner.benchmarks.graphs import Built, Drawn, build
from lanner.embedded import CALIBRATION_SAMPLES, compile_embedded
from lanner.errors import InputError
from lanner.model import compile  # noqa: A004 - the interface's name
from lanner.options import Protocols


def embedded(name: str, protocols: Protocols) -> Built:
    """A network that comes with the package, and a digit that training did not see."""
    from lanner.datasets import load_digits

    model = compile_embedded(name, **protocols.keywords(output=protocols.output("logits")))
    return model, load_digits("test")[0][0]


def pneumonia(data: Path | None, protocols: Protocols) -> Built:
    """The network for chest X-rays that comes with the package; the client learns the label and its probability.

    X-rays do not come with it: where a folder of data has none, digits stand in, of the same size and range.
    """
    from lanner.datasets import load_digits

    path = None if data is None else data / "medmnist" / "pneumoniamnist.npz"
    if path is None or not path.is_file():
        samples = load_digits("train")[0][: CALIBRATION_SAMPLES + 1]
    else:
        with np.load(path) as file:
            pixels = file["train_images"][: CALIBRATION_SAMPLES + 1, np.newaxis]
        samples = pixels.astype(np.float32) / np.float32(255)
    with as_file(files("lanner") / "networks" / "pneumonia.onnx") as network:
        return trained(network, "pneumonia", samples, protocols, "probability")


def minionn(folder: Path | None, protocols: Protocols) -> Built:
    """The CIFAR-10 network of MiniONN (Liu et al. 2017): seven convolutions, two average pools."""
    if folder is not None:
        samples = load_cifar10(folder.parents[1], CALIBRATION_SAMPLES + 1)
        return trained(folder / "model.onnx", "cifar10_minionn", samples, protocols)
    return drawn(minionn_graph, protocols)


def resnet(blocks: int, folder: Path | None, protocols: Protocols) -> Built:
    """The CIFAR-10 network of He et al. 2016 with 6 `blocks` + 2 layers; its shortcuts have no parameters."""
    if folder is not None:
        samples = (load_cifar10(folder.parents[1], CALIBRATION_SAMPLES + 1) - CIFAR_MEAN) / CIFAR_DEVIATION
        return trained(folder / "model.onnx", f"resnet{6 * blocks + 2}", samples, protocols)
    return drawn(partial(resnet_graph, blocks), protocols)


def delphi_resnet32(folder: Path | None, protocols: Protocols) -> Built:
    """The ResNet-32 of Mishra et al. 2020 for CIFAR-100: convolutions are the shortcuts of wider stages."""
    if folder is not None:
        return trained(
            folder / "model.onnx", folder.name, load_cifar100(folder.parents[1], CALIBRATION_SAMPLES + 1), protocols
        )
    return drawn(delphi_resnet32_graph, protocols)


def cryptonets(folder: Path | None, protocols: Protocols) -> Built:
    """The network of LoLa (Brutzkus et al. 2019) for MNIST, whose weights are CryptoNets'."""
    protocols = replace(protocols, precision=protocols.precision or CRYPTONETS_BITS)
    if folder is None:
        return drawn(cryptonets_graph, protocols)
    pixels = mnist_images(folder.parents[1], CALIBRATION_SAMPLES + 1)
    return trained(folder / "model.onnx", "mnist_cryptonets", pixels / np.float32(256), protocols)


def lola_cifar(data: Path | None, protocols: Protocols) -> Built:
    """The network of LoLa (Brutzkus et al. 2019) for CIFAR-10, dense, with weights that come with the package.

    Images do not come with it: where no folder of data is given, uniform pixels stand in.
    """
    count = CALIBRATION_SAMPLES + 1
    if data is None:
        samples = np.random.default_rng(1).random((count, 3, 32, 32), dtype=np.float32)
    else:
        samples = load_cifar10(data, count, "train")
    with as_file(files("lanner") / "networks" / "lola_cifar.onnx") as network:
        return trained(network, "lola_cifar", samples, protocols)


def mnist_images(data: Path, count: int) -> NDArray[np.float32]:
    """The first images that MNIST has for training, shape (count, 1, 28, 28) in 0 to 255.

    Raises:
        InputError: If the file is not there or is not one.
    """
    path = data / "mnist" / "train-images-idx3-ubyte.gz"
    try:
        with gzip.open(path) as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), fix="give the folder with --data") from None
    return pixels.reshape(-1, 1, 28, 28)[:count].astype(np.float32)


def drawn(draw: Callable[[], Drawn], protocols: Protocols) -> Built:
    """One of `lanner.benchmarks.drawn`, compiled."""
    return build(*draw(), protocols)


def load_cifar10(data: Path, count: int, split: str = "test") -> NDArray[np.float32]:
    """The first images of CIFAR-10's ``test`` or ``train`` split, shape (count, 3, 32, 32) in [0, 1].

    Raises:
        InputError: If the file is not there or is not one.
    """
    return _images(data / "cifar10" / f"cifar10_{split}.npz", slice(count))


def load_cifar100(data: Path, count: int) -> NDArray[np.float32]:
    """Images of CIFAR-100's test split, which is sorted by class: `CIFAR100_ORDER`'s first, of as many classes.

    Raises:
        InputError: If the file is not there or is not one.
    """
    return _images(data / "cifar100" / "cifar100_test.npz", CIFAR100_ORDER[:count])


def _images(path: Path, wanted: slice | NDArray[np.int64]) -> NDArray[np.float32]:
    """Those images of one of CIFAR's files, shape (n, 3, 32, 32) in [0, 1].

    The file keeps differences: along rows and columns, and of red and blue from green, all modulo 256.
    """
    try:
        with np.load(path) as file:
            planes = file["residual"][:, wanted]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), fix="give the folder with --data") from None
    planes = planes.cumsum(3, np.uint8).cumsum(2, np.uint8)
    planes[0] += planes[1]
    planes[2] += planes[1]
    images: NDArray[np.float32] = planes.swapaxes(0, 1).astype(np.float32) / np.float32(255)
    return images


def trained(
    network: onnx.ModelProto | Path,
    name: str,
    samples: NDArray[np.float32],
    protocols: Protocols,
    output: str = "logits",
) -> Built:
    """A network, or that of an ONNX file, calibrated on all samples but the last, which is returned."""
    model = compile(network, samples[:-1], **protocols.keywords(name=name, output=protocols.output(output)))
    return model, model.manifest.input.clip(samples[-1])


#: Bits of activations and weights with which scores of CryptoNets' network have 93 bits.
CRYPTONETS_BITS = 7

#: The images of CIFAR-100's test split by turns: one of each class, then the next of each.
CIFAR100_ORDER = np.arange(10_000).reshape(100, 100).T.ravel()

#: How the residual networks' training normalized red, green and blue.
CIFAR_MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
CIFAR_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
