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

MOVED = 4
"""The most pixels by which a photograph is moved along each side."""


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


def mirror_and_move(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror every second image of ``(n, 3, 32, 32)`` or so, and move each by its own random amount.

    What comes in from beyond the border is the image reflected at it.
    """
    count, _, height, width = images.shape
    wide = functional.pad(images, [MOVED] * 4, mode="reflect")
    down, right = (torch.randint(2 * MOVED + 1, (count, 1), generator=generator) for _ in range(2))
    rows, columns = down + torch.arange(height), right + torch.arange(width)
    mirrored = torch.rand(count, 1, generator=generator) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    sample = torch.arange(count)[:, None, None]
    return wide[sample, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
