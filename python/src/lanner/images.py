"""How a PNG or JPEG file becomes a network's input: a description in TOML that travels in the model's public half.

The stated rules, in this order:

1. EXIF orientation is applied, so that a photograph is upright; other metadata is ignored.
2. Of several frames the first is taken; palettes become RGB.
3. Alpha is composed over the background, which rule 7 leaves at 0: white with ``invert``, as the paper of dark ink, and
   black without it, as what is around light ink.
4. 16-bit samples are divided by 257, rounding to nearest, so that 0 and 65535 become 0 and 255.
5. ``channels = 1`` takes the luma of ITU-R 601 (0.299 R + 0.587 G + 0.114 B); ``channels = 3`` repeats a grey image.
6. ``resize`` makes the image `size`: ``stretch``, ``crop`` (cover, then cut the middle), ``pad`` (contain, fill with
   the same background), or ``none`` (another size is an error). Interpolation is bilinear, with antialiasing.
7. ``invert`` replaces each sample v by 255 - v.
8. The result is ``(v * scale - mean) / std`` per channel, laid out as the model's input: channels first or last.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from lanner.errors import InputError, MisuseError
from lanner.files import check_file, why

RESIZES = ("stretch", "crop", "pad", "none")

#: Larger pictures are refused before they are decoded: 100 million pixels.
MAX_PIXELS = 100_000_000

#: Where the fields are told, for errors.
_PAGE = "see Pictures in docs/importing.md"


@dataclass(frozen=True, slots=True)
class ImageDescription:
    """The conversion of a picture into an input.

    Attributes:
        channels: 1 (grey) or 3 (RGB).
        size: Height and width of the input, in pixels.
        resize: One of `RESIZES`.
        scale: Factor on samples of 0 to 255.
        mean: Subtracted per channel, after scaling.
        std: Divided by per channel, after subtracting.
        invert: Whether dark and light are exchanged first.
    """

    channels: int
    size: tuple[int, int]
    resize: str = "stretch"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    invert: bool = False

    @classmethod
    def read(cls, path: Path) -> ImageDescription:
        """Read a description from a TOML file.

        Raises:
            MisuseError: If the file cannot be read or a field is wrong; the field is named.
        """
        check_file(path, MisuseError)
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise MisuseError(
                f"cannot be read as TOML ({why(error)})", where=str(path), fix=f"write `field = value` lines, {_PAGE}"
            ) from None
        try:
            return cls.from_document(document)
        except ValueError as error:
            raise MisuseError(str(error), where=str(path), fix=f"correct this field, {_PAGE}") from None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ImageDescription:
        """Check a description's fields.

        Raises:
            ValueError: Naming the field that is missing, unknown or wrong.
        """
        unknown = sorted(set(document) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(f"unknown field `{unknown[0]}`; there are {', '.join(cls.__dataclass_fields__)}")
        channels = _choice(document, "channels", (1, 3))
        return cls(
            channels=channels,
            size=_size(document),
            resize=_choice({"resize": "stretch", **document}, "resize", RESIZES),
            scale=_numbers(document, "scale", 1, 1 / 255)[0],
            mean=_numbers(document, "mean", channels, 0.0),
            std=_nonzero(_numbers(document, "std", channels, 1.0)),
            invert=_choice({"invert": False, **document}, "invert", (False, True)),
        )

    def document(self) -> dict[str, Any]:
        """The description as the JSON object of a model's public half."""
        return asdict(self)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Check that pictures so described fit an input.

        Raises:
            MisuseError: If the input's shape is neither channels first nor channels last of this size.
        """
        if shape not in (self._first(), self._last()):
            raise MisuseError(
                f"the image description gives {self._first()} or {self._last()}, the model's input is {shape}",
                fix="correct `channels` or `size`",
            )

    def load(self, path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Decode a picture into an input of the given shape.

        Raises:
            InputError: If the file is no readable PNG or JPEG, or has another size under ``resize = "none"``.
        """
        return self.convert(open_image(path), shape, str(path))

    def convert(self, image: Image.Image, shape: tuple[int, ...], where: str = "picture") -> NDArray[np.float32]:
        """Turn a picture that `open_image` or `decode_image` gave into an input of the given shape.

        Raises:
            InputError: If it has another size under ``resize = "none"``; `where` is named.
        """
        samples = self._samples(image, where)
        if self.invert:
            samples = 255.0 - samples
        values = (samples * self.scale - np.array(self.mean)) / np.array(self.std)
        pixels = values.astype(np.float32)
        return pixels if shape == self._last() else np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def _samples(self, image: Image.Image, where: str) -> NDArray[np.float64]:
        """Rules 3 to 6: samples of 0 to 255, shape (height, width, channels)."""
        # Before the inversion; what is 0 is scaled and normalised as every sample is.
        background = 255 if self.invert else 0
        flat = _eight_bits(_without_alpha(image, background))
        colour = flat.convert("L" if self.channels == 1 else "RGB")
        fitted = self._fit(colour, background, where)
        return np.asarray(fitted, dtype=np.float64).reshape(*self.size, self.channels)

    def _fit(self, image: Image.Image, background: int, where: str) -> Image.Image:
        size = (self.size[1], self.size[0])  # Pillow says width first.
        method = Image.Resampling.BILINEAR
        if image.size == size:
            return image
        if self.resize == "crop":
            return ImageOps.fit(image, size, method)
        if self.resize == "pad":
            return ImageOps.pad(image, size, method, color=(background,) * self.channels)
        if self.resize == "none":
            raise InputError(
                f"the picture is {image.size[1]} x {image.size[0]} pixels, "
                f"the model expects {self.size[0]} x {self.size[1]}",
                where=where,
                fix="resize it to that size",
            )
        return image.resize(size, method)

    def _first(self) -> tuple[int, ...]:
        return (self.channels, *self.size)

    def _last(self) -> tuple[int, ...]:
        return (*self.size, self.channels)


#: What a picture that is being decoded is called in what people read.
_decoding: ContextVar[str | None] = ContextVar("decoding", default=None)


def noted(message: str) -> str | None:
    """What Pillow warns of while a picture is decoded, as a sentence with the picture's name; None at other times."""
    where = _decoding.get()
    return None if where is None else f"{where}: the picture may be damaged, and was used as it is ({message})"


def open_image(path: Path) -> Image.Image:
    """Decode the first frame of a PNG or JPEG file, upright.

    Raises:
        InputError: If the file cannot be read, is damaged, is of another kind, or has more than `MAX_PIXELS` pixels.
    """
    return decode_image(path, str(path))


def decode_image(source: Path | BinaryIO, where: str = "picture") -> Image.Image:
    """As `open_image`, of a file or of bytes in memory; `where` is named in errors, and in notes by `noted`."""
    decoding = _decoding.set(where)
    try:
        with Image.open(source, formats=("PNG", "JPEG")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(where)
            image.load()
            return ImageOps.exif_transpose(image)
    except InputError:
        # It is a ValueError, too, as Pillow's are.
        raise
    except UnidentifiedImageError:
        raise InputError("this is not a PNG or JPEG picture", where=where, fix="give one, as a whole file") from None
    except Image.DecompressionBombError:
        # Pillow's own limit, which is larger; it is checked before decoding, too.
        raise _too_large(where) from None
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"this cannot be read as a PNG or JPEG picture ({why(error)})", where=where, fix="give a whole file"
        ) from None
    finally:
        _decoding.reset(decoding)


def _too_large(where: str) -> InputError:
    return InputError(
        f"the picture has too many pixels: at most {MAX_PIXELS // 10**6} million are read",
        where=where,
        fix="make it smaller",
    )


def _without_alpha(image: Image.Image, background: int) -> Image.Image:
    """Rule 3; a palette may carry transparency too."""
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if "transparency" in image.info and image.mode in ("1", "L", "RGB"):
        image = image.convert("RGBA")
    if image.mode not in ("LA", "RGBA", "PA", "La", "RGBa"):
        return image
    image = image.convert("RGBA")
    canvas = Image.new("RGBA", image.size, (background, background, background, 255))
    return Image.alpha_composite(canvas, image).convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Rule 4; Pillow keeps 16-bit grey in the modes ``I`` and ``I;16`` and reduces 16-bit colour itself."""
    if image.mode != "I" and not image.mode.startswith("I;16"):
        return image
    wide = np.asarray(image, dtype=np.uint32).clip(0, 65535)
    return Image.fromarray(((wide + 128) // 257).astype(np.uint8))


def _choice(document: Mapping[str, Any], name: str, choices: tuple[Any, ...]) -> Any:  # noqa: ANN401 - of its field's type
    """A field that must be one of a few values, and of their type (so that true is not 1)."""
    value = document.get(name)
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        shown = ", ".join(map(repr, choices))
        found = f"`{name}` is {value!r}" if name in document else f"there is no `{name}`"
        raise ValueError(f"{found}; it must be one of {shown}")
    return value


def _size(document: Mapping[str, Any]) -> tuple[int, int]:
    value = document.get("size")
    sides = [value, value] if isinstance(value, int) else value
    whole = isinstance(sides, list | tuple) and len(sides) == 2 and all(type(side) is int for side in sides)
    if not whole or not all(1 <= side <= 8192 for side in sides):  # type: ignore[union-attr]
        raise ValueError(f"`size` is {value!r}; it must be [height, width] in pixels, 1 to 8192 each")
    return (sides[0], sides[1])  # type: ignore[index]


def _numbers(document: Mapping[str, Any], name: str, count: int, default: float) -> tuple[float, ...]:
    value = document.get(name, default)
    listed = list(value) if isinstance(value, list | tuple) else [value] * count
    real = all(isinstance(number, int | float) and not isinstance(number, bool) for number in listed)
    if len(listed) != count or not real or not np.isfinite(listed).all():
        raise ValueError(f"`{name}` is {value!r}; it must be {count} finite number{'s' if count > 1 else ''}")
    return tuple(map(float, listed))


def _nonzero(std: tuple[float, ...]) -> tuple[float, ...]:
    if 0.0 in std:
        raise ValueError("`std` is 0; it must not be zero")
    return std
