"""Picture files: every stated rule of `lanner.images`, by example."""

import io
import re
import struct
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lanner.errors import InputError, MisuseError
from lanner.images import RESIZES, ImageDescription, decode_image

GREY: dict[str, Any] = {"channels": 1, "size": [2, 3], "scale": 1.0}


def load(tmp_path: Path, image: Image.Image, suffix: str = ".png", **fields: Any) -> NDArray[np.float32]:  # noqa: ANN401
    path = tmp_path / f"picture{suffix}"
    image.save(path)
    description = ImageDescription.from_document({**GREY, **fields})
    return description.load(path, (description.channels, *description.size))


def picture(values: Any, mode: str | None = None) -> Image.Image:  # noqa: ANN401
    array = np.array(values, dtype=np.uint8)
    return Image.fromarray(array) if mode is None else Image.fromarray(array).convert(mode)


ROWS = [[0, 100, 255], [10, 20, 30]]


def test_grey_samples_pass_unchanged(tmp_path: Path) -> None:
    pixels = load(tmp_path, picture(ROWS))
    assert pixels.shape == (1, 2, 3)
    assert pixels.dtype == np.float32
    assert pixels[0].tolist() == ROWS


def test_scale_mean_and_std_apply_in_this_order(tmp_path: Path) -> None:
    pixels = load(tmp_path, picture(ROWS), scale=1 / 255, mean=0.5, std=0.25)
    assert np.allclose(pixels[0], (np.array(ROWS) / 255 - 0.5) / 0.25)


def test_invert_exchanges_dark_and_light(tmp_path: Path) -> None:
    assert load(tmp_path, picture(ROWS), invert=True)[0].tolist() == (255 - np.array(ROWS)).tolist()


def test_colour_becomes_luma(tmp_path: Path) -> None:
    colour = picture(np.full((2, 3, 3), (200, 100, 50)))
    assert np.all(load(tmp_path, colour) == round(0.299 * 200 + 0.587 * 100 + 0.114 * 50))


def test_grey_is_repeated_for_three_channels(tmp_path: Path) -> None:
    pixels = load(tmp_path, picture(ROWS), channels=3, mean=[0, 1, 2])
    assert [channel.tolist() for channel in pixels] == [(np.array(ROWS) - mean).tolist() for mean in (0, 1, 2)]


def test_channels_last_follows_the_models_shape(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    picture(np.arange(18).reshape(2, 3, 3)).save(path)
    description = ImageDescription.from_document({**GREY, "channels": 3})
    assert description.load(path, (2, 3, 3)).tolist() == np.arange(18).reshape(2, 3, 3).tolist()


@pytest.mark.parametrize("invert", [False, True])
def test_alpha_shows_the_background(tmp_path: Path, invert: bool) -> None:
    clear = Image.new("RGBA", (3, 2), (77, 77, 77, 0))
    assert np.all(load(tmp_path, clear, invert=invert) == 0)


@pytest.mark.parametrize("invert", [False, True])
def test_half_alpha_is_composed(tmp_path: Path, invert: bool) -> None:
    # Dark ink where it is inverted, light ink where it is not.
    half = Image.new("LA", (3, 2), (0 if invert else 255, 128))
    assert np.all(load(tmp_path, half, invert=invert) == 128)


def test_one_bit_pictures_are_transparent_too(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Image.new("1", (3, 2), 1).save(path, transparency=1)
    assert np.all(ImageDescription.from_document(GREY).load(path, (1, 2, 3)) == 0)


def naive(samples: NDArray[np.uint8], side: int, *, invert: bool, mean: float, std: float) -> NDArray[np.float64]:
    """Grey and alpha, shape (height, side, 2), pixel by pixel in the middle of a square."""
    paper = 255 if invert else 0
    height = len(samples)
    pixels = np.empty((side, side))
    for y in range(side):
        row = y - (side - height) // 2
        for x in range(side):
            grey, alpha = map(int, samples[row, x]) if 0 <= row < height else (paper, 255)
            value = round((grey * alpha + paper * (255 - alpha)) / 255)
            pixels[y, x] = ((255 - value if invert else value) / 255 - mean) / std
    return pixels


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.1307, 0.3081)])
def test_alpha_and_padding_equal_the_naive_twin(tmp_path: Path, invert: bool, mean: float, std: float) -> None:
    samples = np.random.default_rng(3).choice(np.array([0, 128, 255], np.uint8), (4, 8, 2))
    image = Image.fromarray(samples, "LA")
    document: dict[str, Any] = {
        "invert": invert,
        "resize": "pad",
        "size": 8,
        "scale": 1 / 255,
        "mean": mean,
        "std": std,
    }
    found = load(tmp_path, image, **document)[0]
    expected = naive(samples, 8, invert=invert, mean=mean, std=std)
    assert np.abs(found - expected).max() < 1e-6
    # What is around the picture is a sample of 0, normalised as all are.
    assert np.allclose(found[:2], -mean / std)


def test_dark_ink_without_paper_reads_as_on_white_paper(tmp_path: Path) -> None:
    ink = np.zeros((28, 28), bool)
    ink[4:24, 12:16] = True
    samples = np.stack([np.zeros_like(ink), ink], axis=-1).astype(np.uint8) * 255
    document: dict[str, Any] = {"invert": True, "size": 28, "scale": 1 / 255}
    for clear in (Image.fromarray(samples, "LA"), Image.fromarray(samples[..., [0, 0, 0, 1]], "RGBA")):
        assert np.array_equal(load(tmp_path, clear, **document)[0], ink.astype(np.float32))


def test_sixteen_bits_are_divided_by_257(tmp_path: Path) -> None:
    wide = Image.fromarray(np.array([[0, 257, 65535], [128, 129, 385]], dtype=np.uint16))
    assert load(tmp_path, wide)[0].tolist() == [[0, 1, 255], [0, 1, 1]]


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    sideways = picture(np.array(ROWS).T.copy())
    exif = Image.Exif()
    exif[0x0112] = 6  # To be turned a quarter clockwise.
    path = tmp_path / "turned.png"
    sideways.save(path, exif=exif)
    pixels = ImageDescription.from_document(GREY).load(path, (1, 2, 3))
    assert pixels[0].tolist() == np.rot90(np.array(ROWS).T, -1).tolist()


def test_palette_is_read_as_colour(tmp_path: Path) -> None:
    assert load(tmp_path, picture(np.full((2, 3, 3), 90)).quantize(4))[0].tolist() == [[90] * 3] * 2


@pytest.mark.parametrize("resize", ["stretch", "crop", "pad"])
def test_resize_gives_the_size(tmp_path: Path, resize: str) -> None:
    pixels = load(tmp_path, picture(np.full((40, 50), 60)), resize=resize)
    assert pixels.shape == (1, 2, 3)
    assert pixels[0, 1, 1] == 60


def test_pad_fills_with_the_background(tmp_path: Path) -> None:
    pixels = load(tmp_path, picture(np.full((40, 10), 60)), resize="pad", size=[4, 5])
    assert pixels[0, 0].tolist() == [0.0, 0.0, 60.0, 0.0, 0.0]
    inverted = load(tmp_path, picture(np.full((40, 10), 60)), resize="pad", size=[4, 5], invert=True)
    assert inverted[0, 0].tolist() == [0.0, 0.0, 195.0, 0.0, 0.0]


def test_another_size_is_refused_where_nothing_resizes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"4 x 5 pixels.*2 x 3"):
        load(tmp_path, picture(np.zeros((4, 5))), resize="none")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n garbage", b"GIF89a"])
def test_damaged_picture_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"picture\.png"):
        ImageDescription.from_document(GREY).load(path, (1, 2, 3))


def test_truncated_jpeg_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "picture.jpg"
    picture(np.arange(10000).reshape(100, 100) % 251).save(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(InputError, match="cannot be read"):
        ImageDescription.from_document(GREY).load(path, (1, 2, 3))


def png_header(width: int, height: int) -> bytes:
    """A PNG file up to its header: what is read before anything is decoded."""
    header = b"IHDR" + struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    parts = (header, b"IDAT" + zlib.compress(b""), b"IEND")
    chunks = (struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


# From Pillow's own limit on it is Pillow that refuses.
@pytest.mark.parametrize(("width", "height"), [(10_001, 10_000), (30_000, 30_000), (2**31 - 1, 2**31 - 1)])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_too_many_pixels_are_told_before_decoding(width: int, height: int) -> None:
    with pytest.raises(InputError) as caught:
        decode_image(io.BytesIO(png_header(width, height)))
    assert caught.value.what == "the picture has too many pixels: at most 100 million are read"
    assert caught.value.fix == "make it smaller"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"channels": 2}, "channels"),
        ({"channels": True}, "channels"),
        ({"size": [0, 3]}, "size"),
        ({"size": "big"}, "size"),
        ({"size": [1, 2, 3]}, "size"),
        ({"resize": "squash"}, "resize"),
        ({"scale": "x"}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"mean": [0, 0]}, "mean"),
        ({"std": 0}, "std"),
        ({"invert": 1}, "invert"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"`{field}`"):
        ImageDescription.from_document({**GREY, **change})


def test_description_survives_its_document() -> None:
    description = ImageDescription.from_document({**GREY, "mean": 0.1307, "std": [0.3081]})
    assert ImageDescription.from_document(description.document()) == description


def test_toml_file_is_read_and_its_errors_name_it(tmp_path: Path) -> None:
    path = tmp_path / "digits.toml"
    path.write_text("channels = 1\nsize = 28\n")
    assert ImageDescription.read(path).size == (28, 28)
    path.write_text("channels = 5\nsize = 28\n")
    with pytest.raises(MisuseError, match=r"digits.toml.*channels.*; correct this field, see Pictures in docs/"):
        ImageDescription.read(path)
    path.write_text("channels = 1\nsize = 28\ncolour = 1\n")
    with pytest.raises(MisuseError, match="unknown field `colour`; there are channels, size, resize, scale, mean, std"):
        ImageDescription.read(path)
    path.write_text("channels =")
    with pytest.raises(MisuseError, match=r"digits.toml.*TOML.*see Pictures in docs/importing\.md"):
        ImageDescription.read(path)


def test_page_of_pictures_tells_every_field_as_it_is() -> None:
    text = (Path(__file__).parents[3] / "docs" / "importing.md").read_text(encoding="utf-8")
    section = text.split("\n## Pictures\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [field.name for field in fields(ImageDescription)]
    assert all(f"`{resize}`" in section for resize in RESIZES)


def test_description_must_fit_the_models_input() -> None:
    description = ImageDescription.from_document(GREY)
    description.check_shape((1, 2, 3))
    description.check_shape((2, 3, 1))
    with pytest.raises(MisuseError, match="28"):
        description.check_shape((1, 28, 28))
