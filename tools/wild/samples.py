"""Inputs that resemble what a model reads, such as pictures, sounds and tokens: drawn, and the same each time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wild.listed import Input, Listed, ListError

Samples: TypeAlias = NDArray[Any]

#: Samples per second of a sound, unless it says otherwise.
_RATE = 16000


def draw(model: Listed, count: int, *, tested: bool = False) -> dict[str, Samples]:
    """Samples for each input of a model, (count, *shape): those to calibrate with, or others to test with.

    Raises:
        ListError: If the list names a kind that there is not.
    """
    drawn = {}
    for name, entry in model.inputs.items():
        if entry.kind not in KINDS:
            raise ListError(f"{model.name}, {name}: there is no kind {entry.kind}; there are {', '.join(KINDS)}")
        rng = np.random.default_rng([zlib.crc32(f"{model.name}/{name}".encode()), tested])
        drawn[name] = np.stack([KINDS[entry.kind](rng, entry) for _ in range(count)])
    return drawn


def _picture(rng: np.random.Generator, entry: Input) -> Samples:
    """Shades, a few boxes and discs with edges, and a little noise; channels last where the last side is 1 or 3."""
    last = entry.shape[-1] in (1, 3)
    channels, height, width = (entry.shape[-1], *entry.shape[:2]) if last else entry.shape
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    slopes = rng.uniform(-0.5, 0.5, (channels, 2, 1, 1))
    image = rng.uniform(0.3, 0.7, (channels, 1, 1)) + slopes[:, 0] * x + slopes[:, 1] * y
    for _ in range(6):
        (cy, cx), (ry, rx) = rng.uniform(0, 1, 2), rng.uniform(0.05, 0.3, 2)
        box = np.maximum(abs(y - cy) / ry, abs(x - cx) / rx) < 1
        disc = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1
        image = np.where(box if rng.random() < 0.5 else disc, rng.uniform(0, 1, (channels, 1, 1)), image)
    image = np.clip(image + 0.02 * rng.standard_normal(image.shape), 0, 1)
    low, high = _ends(entry.settings, 0.0, 1.0)
    scaled = (low + (high - low) * image).astype(np.float32)
    return np.ascontiguousarray(np.moveaxis(scaled, 0, -1)) if last else scaled


def _writing(rng: np.random.Generator, entry: Input) -> Samples:
    """A picture with a line of digits on it, dark on light, of seven strokes each."""
    channels, height, width = entry.shape
    image = np.broadcast_to(rng.uniform(0.75, 1.0, (channels, 1, 1)), entry.shape).copy()
    ink = rng.uniform(0.0, 0.25, (channels, 1, 1))
    high = int(rng.integers(height // 4, height // 2))
    wide, thick = max(high // 2, 4), max(high // 8, 1)
    top, left = int(rng.integers(2, height - high - 1)), int(rng.integers(2, 6))
    while left + wide < width - 2:
        middle, bottom, right = top + (high - thick) // 2, top + high - thick, left + wide - thick
        across, down = (left, wide), (thick, (high + thick) // 2)
        strokes = [(line, across[0], thick, across[1]) for line in (top, middle, bottom)]
        strokes += [(line, side, down[1], down[0]) for line in (top, middle) for side in (left, right)]
        for (y, x, rows, columns), drawn in zip(strokes, rng.choice(_DIGITS), strict=True):
            if drawn:
                image[:, y : y + rows, x : x + columns] = ink
        left += wide + max(high // 5, 2)
    image = np.clip(image + 0.02 * rng.standard_normal(image.shape), 0, 1)
    low, high_end = _ends(entry.settings, 0.0, 1.0)
    return (low + (high_end - low) * image).astype(np.float32)


#: Which strokes of each digit are drawn: top, middle and bottom, then left and right of each half.
_DIGITS = np.array(
    [
        [1, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 0, 1],
        [1, 1, 1, 0, 1, 1, 0],
        [1, 1, 1, 0, 1, 0, 1],
        [0, 1, 0, 1, 1, 0, 1],
        [1, 1, 1, 1, 0, 0, 1],
        [1, 1, 1, 1, 0, 1, 1],
        [1, 0, 0, 0, 1, 0, 1],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 0, 1],
    ]
)


def _sound(rng: np.random.Generator, entry: Input) -> Samples:
    """A voice: harmonics of a pitch that moves, louder and softer, over a little noise."""
    count = int(np.prod(entry.shape))
    time = np.arange(count) / float(entry.settings.get("rate", _RATE))
    pitch = rng.uniform(90, 250) * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(2, 5) * time + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(np.gradient(time) * pitch)
    voice = sum(rng.uniform(0.2, 1.0) / k * np.sin(k * phase + rng.uniform(0, 6)) for k in range(1, 12))
    loud = 0.5 * (1 + np.sin(2 * np.pi * rng.uniform(1, 4) * time + rng.uniform(0, 6)))
    sound = rng.choice([0.0, 0.05, 0.2, 0.4]) * loud * voice + rng.choice([1e-4, 3e-3]) * rng.standard_normal(count)
    return np.asarray(np.clip(sound, -1, 1), np.float32).reshape(entry.shape)


def _signal(rng: np.random.Generator, entry: Input) -> Samples:
    """Noise whose power falls with its frequency along the last axis, as of a brain, with deviation `scale`."""
    length = entry.shape[-1]
    spectrum = np.fft.rfft(rng.standard_normal(entry.shape), axis=-1)
    spectrum /= np.sqrt(np.arange(1, length // 2 + 2))
    drawn = np.fft.irfft(spectrum, length, axis=-1)
    scale = float(entry.settings.get("scale", 1.0))
    return np.asarray(scale * drawn / drawn.std(), np.float32)


def _noise(rng: np.random.Generator, entry: Input) -> Samples:
    """Normal numbers of deviation `scale` about `mean`."""
    mean, scale = float(entry.settings.get("mean", 0.0)), float(entry.settings.get("scale", 1.0))
    return (mean + scale * rng.standard_normal(entry.shape)).astype(np.float32)


def _tokens(rng: np.random.Generator, entry: Input) -> Samples:
    """Whole numbers from `low` to below `high`, between `first` and `last` where these are given."""
    settings = entry.settings
    drawn = rng.integers(settings.get("low", 0), settings["high"], entry.shape)
    for place, name in ((0, "first"), (-1, "last")):
        if name in settings:
            drawn[..., place] = settings[name]
    return drawn.astype(settings.get("type", "int64"))


def _constant(rng: np.random.Generator, entry: Input) -> Samples:
    """The number `value` everywhere."""
    del rng
    return np.full(entry.shape, entry.settings["value"], entry.settings.get("type", "float32"))


def _file(rng: np.random.Generator, entry: Input) -> Samples:
    """The two ends of a file's bytes, as magika reads them: text or not, and 256 where there are none."""
    half = entry.shape[0] // 2
    words = [
        "import ",
        "def ",
        "int ",
        "{\n",
        "}\n",
        "<p>",
        "</p>\n",
        "the ",
        "of ",
        "return ",
        " = ",
        ";\n",
        "# ",
        "0, ",
    ]
    if rng.random() < 0.5:
        chosen = rng.choice(words, rng.integers(20, 600))
        content = "".join(chosen).encode()
    else:
        content = rng.integers(0, 256, rng.integers(40, 3000), dtype=np.uint8).tobytes()
    row = np.full(entry.shape, 256, np.int64)
    start, end = content.lstrip()[:half], content.rstrip()[-half:]
    row[: len(start)] = np.frombuffer(start, np.uint8)
    row[len(row) - len(end) :] = np.frombuffer(end, np.uint8)
    return row.astype(entry.settings.get("type", "int64"))


def _ends(settings: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    return float(settings.get("low", low)), float(settings.get("high", high))


#: What can be drawn, by the name that the list gives it.
KINDS: dict[str, Callable[[np.random.Generator, Input], Samples]] = {
    "picture": _picture,
    "writing": _writing,
    "sound": _sound,
    "signal": _signal,
    "noise": _noise,
    "tokens": _tokens,
    "constant": _constant,
    "file": _file,
}
