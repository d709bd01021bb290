"""Random small changes of a batch of images, so that the networks learn what they show rather than pixels."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

ROTATION = math.radians(12)
SHEAR = 0.15
SCALE = 0.12
SHIFT = 2 / 14
"""Two pixels, in the unit of ``affine_grid``: half an image."""

UNCHANGED = 0.25
"""The part of the images left as they are: resampling blurs, and the networks must know sharp digits as well."""


def augment(images: Tensor, generator: torch.Generator, outside: str = "zeros") -> Tensor:
    """Rotate, shear, scale and shift each image of ``(n, 1, 28, 28)`` by its own random amount, or leave it.

    ``outside`` says what comes in from beyond the border, as ``grid_sample``'s ``padding_mode``.
    """
    count = len(images)

    def uniform(limit: float) -> Tensor:
        return (torch.rand(count, generator=generator) * 2 - 1) * limit

    angle, shear = uniform(ROTATION), uniform(SHEAR)
    wide, high = 1 + uniform(SCALE), 1 + uniform(SCALE)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    rows = [
        torch.stack([cosine * wide, (shear - sine) * high, uniform(SHIFT)], dim=1),
        torch.stack([sine * wide, cosine * high, uniform(SHIFT)], dim=1),
    ]
    grid = functional.affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    deformed = functional.grid_sample(images, grid, padding_mode=outside, align_corners=False)
    keep = torch.rand(count, generator=generator) < UNCHANGED
    return torch.where(keep[:, None, None, None], images, deformed)
