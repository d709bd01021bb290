"""Picture files: every stated rule of `lanner.images`, by example."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lanner.errors import InputError, MisuseError
from lanner.images import ImageDescription

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


@pytest.mark.parametrize(("invert", "expected"), [(False, 255), (True, 255)])
def test_alpha_shows_the_background(tmp_path: Path, invert: bool, expected: int) -> None:
    clear = Image.new("RGBA", (3, 2), (77, 77, 77, 0))
    # Without `invert` the background is white; with it, black before it is inverted.
    assert np.all(load(tmp_path, clear, invert=invert) == expected)


def test_half_alpha_is_composed(tmp_path: Path) -> None:
    half = Image.new("LA", (3, 2), (0, 128))
    assert np.all(load(tmp_path, half) == 127)


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
    assert pixels[0, 0].tolist() == [255.0, 255.0, 60.0, 255.0, 255.0]


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
    with pytest.raises(MisuseError, match=r"digits.toml.*channels"):
        ImageDescription.read(path)
    path.write_text("channels =")
    with pytest.raises(MisuseError, match=r"digits.toml.*TOML"):
        ImageDescription.read(path)


def test_description_must_fit_the_models_input() -> None:
    description = ImageDescription.from_document(GREY)
    description.check_shape((1, 2, 3))
    description.check_shape((2, 3, 1))
    with pytest.raises(MisuseError, match="28"):
        description.check_shape((1, 28, 28))
