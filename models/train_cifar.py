"""Trains LoLa's network for CIFAR-10, dense or with a block-circulant convolution, and writes it as ONNX.

    python models/train_cifar.py cifar --data DIR --output models/lola_cifar.onnx
    python models/train_cifar.py cifar_circulant --data DIR --output models/lola_cifar_circulant.onnx

DIR holds the official files of CIFAR-10's binary version. The test part is told after each epoch, and decides nothing.
Needs models/requirements.txt; nothing else in the project needs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx
import torch
from augment import mirror_and_move
from cifar10 import load_cifar10
from export import to_onnx
from fitting import accuracy, add_options, fit, print_magnitudes
from folding import fold
from integers import add_integer_options, fit_whole
from networks import network
from teacher import add_teacher_options, soft_labels
from whitening import whiten

LABEL_SMOOTHING = 0.1

COLOUR = (3, 32, 32)


def main() -> None:
    """Parse the command line, train, fold, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["cifar", "cifar_circulant"])
    parser.add_argument("--data", type=Path, required=True, help="folder with CIFAR-10's binary version")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    add_options(parser, epochs=16, batch=250, rate=2e-3, decay=5e-2)
    add_integer_options(parser)
    add_teacher_options(parser)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    x, y = map(torch.from_numpy, load_cifar10(options.data, "train"))
    model = network(options.name).to(memory_format=torch.channels_last)
    whiten(model[0], x)
    test = load_cifar10(options.data, "test")
    # Soft labels need no smoothing.
    taught, smoothing = (y, LABEL_SMOOTHING) if options.teacher is None else (soft_labels(x, y, options), 0.0)
    fit(model, x, taught, options, augment=mirror_and_move, smoothing=smoothing, held=test)
    model = fold(model)
    if options.bits:
        fit_whole(model, x, y, options, augment=mirror_and_move, smoothing=LABEL_SMOOTHING)
    print(f"CIFAR-10: {accuracy(model, *test):.2%} of {len(test[0])} test images")
    print_magnitudes(model, torch.from_numpy(test[0][:1000]))
    onnx.save(to_onnx(model, f"lola_{options.name}", COLOUR), options.output)


if __name__ == "__main__":
    main()
