"""The error hierarchy: sentences, kinds and exit codes."""

import re
from pathlib import Path

import pytest

from lanner import _native, errors
from lanner.options import CompileKeywords


def native_error(kind: str) -> _native.NativeError:
    error = _native.NativeError("what")
    error.kind, error.what, error.where, error.fix = kind, "what", "layer fc1", "do this"
    return error


@pytest.mark.parametrize(
    ("kind", "raised", "code"),
    [
        ("misuse", errors.MisuseError, 2),
        ("model", errors.ModelError, 3),
        ("unsupported", errors.UnsupportedOpError, 3),
        ("peer", errors.PeerError, 4),
        ("busy", errors.BusyError, 4),
        ("transport", errors.TransportError, 5),
        ("input", errors.InputError, 6),
        ("never heard of", errors.LannerError, 1),
    ],
)
def test_native_kind_becomes_its_error(kind: str, raised: type[errors.LannerError], code: int) -> None:
    with pytest.raises(errors.LannerError) as caught, errors.native_errors():
        raise native_error(kind)
    assert type(caught.value) is raised
    assert caught.value.exit_code == code
    assert caught.value.where == "layer fc1"


def test_sentence_says_where_what_and_fix() -> None:
    assert str(errors.InputError("is NaN", where="x.npy", fix="give numbers")) == "x.npy: is NaN; give numbers"
    assert str(errors.PeerError("refused")) == "refused"


def test_document_has_the_four_members() -> None:
    error = errors.PeerError("refused", where="host:1")
    assert error.document() == {"kind": "peer", "what": "refused", "where": "host:1", "fix": ""}


def test_place_is_named_where_the_native_error_names_none() -> None:
    error = native_error("peer")
    error.where = ""
    with pytest.raises(errors.PeerError, match="host:1"), errors.native_errors("host:1"):
        raise error


def test_a_busy_server_is_an_error_of_its_own_that_is_a_peers() -> None:
    with pytest.raises(errors.BusyError) as caught, errors.native_errors("host:1"):
        raise native_error("busy")
    assert isinstance(caught.value, errors.PeerError)
    assert (caught.value.kind, caught.value.exit_code) == ("busy", 4)


def test_a_place_is_named_once_though_its_letters_are_in_the_sentence() -> None:
    assert str(errors.ModelError("this is a folder", where="d")) == "d: this is a folder"
    assert str(errors.ModelError("cannot open d", where="d")) == "cannot open d"
    assert str(errors.ModelError("cannot listen on 1.2.3.4:7", where="1.2.3.4:7")) == "cannot listen on 1.2.3.4:7"


def test_options_are_named_as_the_caller_gives_them() -> None:
    def caught() -> errors.LannerError:
        error = native_error("misuse")
        error.what, error.fix = "⟦tls_cert⟧ has no key", "give ⟦tls_key⟧, or compile with ⟦precision=1%⟧"
        with pytest.raises(errors.MisuseError) as raised, errors.native_errors():
            raise error
        return raised.value

    in_python = ("tls_cert= has no key", 'give tls_key=, or compile with precision="1%"')
    assert (caught().what, caught().fix) == in_python
    with errors.naming_flags():
        error = caught()
    assert (error.what, error.fix) == ("--tls-cert has no key", "give --tls-key, or compile with --precision 1%")
    assert error.document()["fix"] == error.fix
    assert (caught().what, caught().fix) == in_python


def test_every_option_that_rust_names_is_one_of_a_command_and_no_flag_stands_in_rust() -> None:
    root = Path(__file__).resolve().parents[3]
    named = re.findall(r'Self\("(\w+)"\)', (root / "crates/network/src/field.rs").read_text(encoding="utf-8"))
    assert len(named) > 20
    commands = "".join(path.read_text(encoding="utf-8") for path in (root / "python/src/lanner").rglob("*.py"))
    flags = {f"--{name.replace('_', '-')}" for name in named}
    declared = {f"--{name.replace('_', '-')}" for name in CompileKeywords.__annotations__}
    assert {flag for flag in flags - declared if f'"{flag}"' not in commands} == set()
    for path in root.glob("crates/*/src/**/*.rs"):
        source = path.read_text(encoding="utf-8")
        assert [flag for flag in flags if re.search(rf'"[^"\n]*{flag}\b', source)] == [], path


def test_unsupported_operator_is_a_model_error() -> None:
    assert issubclass(errors.UnsupportedOpError, errors.ModelError)


def test_a_wrong_input_is_a_wrong_value_for_programs_that_know_only_that() -> None:
    # As web services answer both with the same status.
    assert issubclass(errors.InputError, ValueError)
    assert not issubclass(errors.TransportError, ValueError)
