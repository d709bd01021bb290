"""Files that a page sends: pictures of other kinds are answered with what to convert them to."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.uploads import read_upload

DICOM = bytes(128) + b"DICM" + bytes(100)


def saved(kind: str) -> bytes:
    """A picture as bytes of a kind that Pillow writes."""
    content = io.BytesIO()
    Image.new("L", (8, 8), 255).save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["GIF", "WebP", "BMP", "TIFF", "DICOM"])
def test_pictures_of_other_kinds_are_named(kind: str) -> None:
    manifest = lanner.compile(tiny_classifier(), tiny_samples()).manifest
    content = DICOM if kind == "DICOM" else saved(kind)
    with pytest.raises(lanner.InputError) as caught:
        read_upload(content, manifest)
    assert kind in caught.value.what
    assert "PNG" in caught.value.fix


def test_rows_that_begin_like_a_picture_are_rows(tmp_path: Path) -> None:
    # A header of a table may begin with any letters.
    manifest = lanner.compile(tiny_classifier(), tiny_samples()).manifest
    (row,) = tiny_samples(1)
    np.savetxt(tmp_path / "x.csv", row.reshape(1, -1), delimiter=",", header="BMI" + ",x" * (row.size - 1), comments="")
    batch = read_upload((tmp_path / "x.csv").read_bytes(), manifest, csv_header=True)
    assert np.allclose(batch[0], row)
