"""Soft labels: what another network tells of the training samples, for a smaller one to learn from.

[HVD15] Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network", https://arxiv.org/abs/1503.02531,
section 2.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnxruntime
import torch
from torch import Tensor

TEMPERATURE = 4.0
SHARE = 0.8
"""How much of a soft label is the teacher's; the rest is the label."""

BATCH = 500


def add_teacher_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `soft_labels`."""
    parser.add_argument("--teacher", type=Path, help="an ONNX network from pixels to logits, to learn from")
    parser.add_argument("--teacher-mean", type=float, nargs=3, default=[0.0, 0.0, 0.0], help="of its pixels, by colour")
    parser.add_argument("--teacher-std", type=float, nargs=3, default=[1.0, 1.0, 1.0], help="of its pixels, by colour")


def soft_labels(x: Tensor, y: Tensor, options: argparse.Namespace) -> Tensor:
    """Labels ``(n, classes)`` that sum to 1: a part at ``y``, else what the teacher makes of ``x``, mirrored or not.

    Args:
        x: Pixels ``(n, 3, height, width)`` in [0, 1].
        y: Labels ``(n,)``.
        options: Those of `add_teacher_options`.
    """
    mean, std = (torch.tensor(of).view(1, 3, 1, 1) for of in (options.teacher_mean, options.teacher_std))
    limits = onnxruntime.SessionOptions()
    limits.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(str(options.teacher), limits, providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()

    def logits(images: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {entry.name: ((images - mean) / std).numpy()})[0])

    told = torch.cat([(logits(batch) + logits(batch.flip(3))) / 2 for batch in x.split(BATCH)])
    print(f"the teacher tells {(told.argmax(dim=1) == y).float().mean().item():.2%} of the training images", flush=True)
    own = torch.nn.functional.one_hot(y, told.shape[1]).float()
    return SHARE * (told / TEMPERATURE).softmax(dim=1) + (1 - SHARE) * own
