"""The owner's choices."""

import json

import pytest

from lanner.errors import MisuseError, UnsupportedOpError
from lanner.options import CompileOptions


def test_document_has_the_agreed_members() -> None:
    document = json.loads(CompileOptions("net", classes=["a", "b"]).document())
    assert document == {
        "name": "net",
        "mode": "auto",
        "output": "label",
        "k": 1,
        "digits": 2,
        "classes": ["a", "b"],
        "image": None,
    }


@pytest.mark.parametrize("output", ["probability", "top-k"])
def test_policy_of_a_later_mode_is_unsupported(output: str) -> None:
    with pytest.raises(UnsupportedOpError, match=output) as caught:
        CompileOptions("net", output=output)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("mode", ["falcon", "cheetah", "tabula", "spectral"])
def test_later_mode_is_unsupported(mode: str) -> None:
    with pytest.raises(UnsupportedOpError, match=mode):
        CompileOptions("net", mode=mode)


@pytest.mark.parametrize("change", [{"mode": "fast"}, {"output": "all"}, {"k": 0}, {"digits": 0}, {"digits": 10}])
def test_unknown_choice_is_misuse(change: dict[str, object]) -> None:
    with pytest.raises(MisuseError):
        CompileOptions("net", **change)  # type: ignore[arg-type]
