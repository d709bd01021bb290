"""Usage: what is not understood exits 2, and standard output holds one document or nothing."""

import json
import shlex

import pytest

import lanner
from lanner.cli import main
from lanner.cli.output import duration, size
from lanner.cli.parser import COMMANDS, parse
from lanner.extras import OPTIONAL


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dream"],
        ["predict"],
        ["predict", "host:1"],
        ["predict", "host:1", "x.npy"],
        ["predict", "not an address", "x.npy", "--insecure-plaintext"],
        ["predict", "host:1", "x.npy", "--pin", "abc"],
        ["predict", "host:1", "x.npy", "--insecure-plaintext", "--timeout", "0"],
        ["compile", "net.onnx", "-o", "net.lanner"],
        ["compile", "net.onnx"],
        ["compile", "net.onnx", "-o", "net.lanner", "--k", "3", "--calibration", "x.npy"],
        ["compile", "net.onnx", "-o", "net.lanner", "--k", "3", "--output", "label", "--calibration", "x.npy"],
        ["compile", "net.onnx", "-o", "net.lanner", "--digits", "3", "--output", "top-k", "--calibration", "x.npy"],
        ["demo", "--images", "0"],
        ["demo", "--images", "many"],
        ["demo", "--mode", "fast"],
        ["demo", "--rounding", "up"],
        ["bench", "networks", "--rounding", "up"],
        ["bench", "sessions"],
        ["serve"],
        ["doctor", "--unknown"],
        ["run", "model.lanner", ""],
        ["compile", "", "-o", "net.lanner"],
        ["estimate", "net.lanner", "--html", ""],
    ],
    ids=" ".join,
)
def test_misuse_exits_2_with_a_document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 2
    output = capsys.readouterr()
    (line,) = output.out.splitlines()
    document = json.loads(line)
    assert document["error"]["kind"] == "misuse"
    assert set(document["error"]) == {"kind", "what", "where", "fix"}
    assert document["predictions"] == []
    assert len(output.err.splitlines()) == 1
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")


def test_help_of_every_command_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for module in COMMANDS:
        assert module.NAME in listed
        assert main([module.NAME, "--help"]) == 0
        assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("command", [module.NAME for module in COMMANDS])
def test_help_ends_with_an_example_that_the_command_accepts(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    program, *example = shlex.split(capsys.readouterr().out.rpartition("Example:")[2])
    assert program == "lanner"
    assert parse(example).command == {module.NAME: module.run for module in COMMANDS}[command]


def test_help_of_serve_says_how_long_an_idle_session_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    assert "15 minutes" in " ".join(capsys.readouterr().out.split())


def test_common_options_stand_before_or_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "doctor"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == before


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lanner {lanner.__version__}\n"


def test_version_as_a_document_tells_what_was_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--version", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["version"] == facts["native_version"] == lanner.__version__
    assert {type(facts[name]) for name in ("wire_version", "file_version")} == {int}
    assert facts["wheel"].startswith("cp311-abi3-")
    assert main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["build"] == facts
    assert {name for name, is_there in document["native"]["features"].items() if is_there} == set(facts["features"])


def test_doctor_tells_of_a_native_module_of_another_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanner, "__version__", "9.9.9")
    assert main(["doctor"]) == 0
    assert "install the package again" in capsys.readouterr().err


def test_doctor_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert all(OPTIONAL[lack["package"]].extra in ("plots", "otel") for lack in document["missing"])
    assert {"Conv", "Gemm", "Softmax"} <= set(document["operators"])
    families = {"transforms", "garbling", "hashes", "transposition", "field products"}
    assert document["native"]["kernels"].keys() == families
    assert all(document["native"]["kernels"].values())
    assert main(["doctor"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "numpy" in output.out
    assert "cp311-abi3" in output.out
    assert max(len(line) for line in output.out.splitlines() if not line.startswith("not installed: ")) <= 80


def test_doctor_says_what_is_missing_what_for_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.cli.doctor._version", lambda _: None)
    assert main(["doctor", "--json"]) == 0
    missing = {lack["package"]: lack for lack in json.loads(capsys.readouterr().out)["missing"]}
    assert set(missing) == set(OPTIONAL)
    assert missing["uvicorn"]["needed_for"] == "lanner gateway"
    assert "pip install matplotlib" in missing["matplotlib"]["fix"]


def test_units_for_people() -> None:
    assert [duration(0.000_04), duration(0.0123), duration(2.5)] == ["0.04 ms", "12.3 ms", "2.50 s"]
    assert [size(12), size(1500), size(2.5e6), size(3e9)] == ["12 B", "1.50 KB", "2.50 MB", "3.00 GB"]
