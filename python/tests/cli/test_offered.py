"""Models on the command line of ``lanner serve``: names, files, and the one commitment that is accepted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lanner as library
from helpers.models import tiny_samples
from helpers.processes import lanner, serving
from lanner.cli.offered import Offered
from lanner.errors import MisuseError, ModelError

A, B = "ab" * 32, "CD" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m.lanner", Offered(None, "m.lanner", None)),
        (f"m.lanner@{A}", Offered(None, "m.lanner", A)),
        (f"digits=/models/m.lanner@{B}", Offered("digits", "/models/m.lanner", B)),
        (f"a=x@y/m@{A}@{B}", Offered("a", f"x@y/m@{A}", B)),
        ("user@host", Offered(None, "user@host", None)),
        (f"m.lanner@{A[1:]}", Offered(None, f"m.lanner@{A[1:]}", None)),
        (f"m.lanner@{A}0", Offered(None, f"m.lanner@{A}0", None)),
        (f"m.lanner@{A}@", Offered(None, f"m.lanner@{A}@", None)),
    ],
)
def test_commitment_is_behind_the_last_sign(text: str, expected: Offered) -> None:
    assert Offered.parse(text) == expected


def test_what_follows_a_file_must_be_a_commitment(tmp_path: Path) -> None:
    path = tmp_path / "m.lanner"
    path.touch()
    for wrong in (A[1:], f"sha256:{A}", "", "x"):
        with pytest.raises(MisuseError, match="is not a model's commitment; write FILE@COMMITMENT with the 64"):
            Offered.parse(f"digits={path}@{wrong}")
    # A file may be called so.
    odd = path.rename(tmp_path / "m.lanner@x")
    assert Offered.parse(str(odd)) == Offered(None, str(odd), None)


def test_another_model_under_the_name_of_a_file_is_refused(tiny_label: Path, tiny_logits: Path, tmp_path: Path) -> None:
    path = tmp_path / "served@home"
    shutil.copy(tiny_label, path)
    own, other = library.load(tiny_label).commitment, library.load(tiny_logits).commitment
    with serving(tmp_path / "state", f"digits={path}@{own.upper()}") as server:
        assert [entry["commitment"] for entry in server.document["models"]] == [own]
        with library.Client(server.address, pin=str(server.document["fingerprint"]), model="digits") as client:
            client.predict(tiny_samples(1)[0])
    shutil.copy(tiny_logits, path)
    options = ("--listen", "127.0.0.1:0", "--state-dir", tmp_path / "state")
    result = lanner("serve", f"digits={path}@{own}", *options)
    assert (result.code, result.document["error"]["kind"]) == (3, "model")
    assert result.document["error"]["what"] == f"found the model with commitment {other}, expected {own}"
    assert result.document["error"]["where"] == str(path)
    assert "replace the file" in result.document["error"]["fix"]


def test_load_accepts_the_expected_model_alone(tiny_label: Path) -> None:
    commitment = library.load(tiny_label).commitment
    assert library.load(tiny_label, commitment=commitment.upper()).commitment == commitment
    with pytest.raises(ModelError, match=f"found the model with commitment {commitment}, expected {A}"):
        library.load(tiny_label, commitment=A)
    with pytest.raises(MisuseError, match="is not a model's commitment"):
        library.load(tiny_label, commitment=commitment[1:])
