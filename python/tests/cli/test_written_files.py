"""Files that commands write: never one that is read, nor what is no file, which is told before any work."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import lanner
from helpers.models import tiny_samples
from lanner.cli import main

LINKS: dict[str, Callable[[Path, Path], Any]] = {
    "itself": lambda _source, _link: None,
    "a symbolic link": lambda source, link: link.symlink_to(source),
    "a hard link": lambda source, link: link.hardlink_to(source),
}

#: Commands whose first words read the files of `read`, and whose last word is the file to write.
READING = (
    "compile net.onnx --calibration x.npy --image image.toml --classes classes.txt --network net.toml -o",
    "export net.lanner -o",
    "keygen net.lanner -o",
    "estimate net.lanner --network net.toml --pin-model net.public --html",
    "estimate net.lanner --plot",
    "estimate net.onnx --calibration samples --html",
    "run net.onnx x.npy --html",
    "debug net.lanner x.npy --network net.toml --html",
    "inspect net.lanner --data labelled.npz --calibration x.npy --html",
    "evaluate net.lanner --data labelled.npz --calibration x.npy --bits 4..5 --plot",
    "bench layers --network loopback,net.toml --save",
)


@pytest.fixture
def read(tmp_path: Path, tiny_onnx: Path, tiny_label: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, the working directory, of files that commands read."""
    folder = tmp_path / "read"
    (folder / "samples").mkdir(parents=True)
    shutil.copy(tiny_onnx, folder / "net.onnx")
    shutil.copy(tiny_label, folder / "net.lanner")
    x = tiny_samples()
    np.save(folder / "x.npy", x)
    np.save(folder / "samples" / "x.npy", x)
    np.savez(folder / "labelled.npz", x=x, y=np.zeros(len(x), int))
    (folder / "image.toml").write_text("channels = 1\nsize = [8, 8]\n")
    (folder / "classes.txt").write_text("ant\nbee\ncat\ndog\n")
    (folder / "net.toml").write_text("bandwidth_bits_per_second = 1e9\nround_trip_seconds = 0.01\n")
    (folder / "net.public").write_text("{}")
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refusal(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> dict[str, Any]:
    """The error's document of a command that is misused."""
    assert main([*arguments, "--json"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    error: dict[str, Any] = json.loads(line)["error"]
    return error


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("command", READING)
def test_no_file_that_is_read_is_written(
    command: str, link: str, read: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.split()
    named = [Path(part) for word in words for part in word.split(",") if (read / part).exists()]
    sources = [next(path.iterdir()) if path.is_dir() else path for path in named]
    assert sources
    before = contents(read)
    for source in sources:
        target = source
        if link != "itself":
            target = tmp_path / "another name"
            target.unlink(missing_ok=True)
            LINKS[link]((read / source), target)
        error = refusal(capsys, [*words, str(target)])
        told = "this file is read, and would be lost" if link == "itself" else f"this file is read as {source}, and"
        assert error["what"].startswith(told)
        assert error["where"] == str(target)
        assert contents(read) == before


def test_weights_beside_a_network_are_not_written(
    read: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.load(tiny_onnx), "wide.onnx", save_as_external_data=True, location="wide.data", size_threshold=0)
    before = contents(read)
    error = refusal(capsys, ["compile", "wide.onnx", "--calibration", "x.npy", "-o", "wide.data"])
    assert error["what"] == "this file is read, and would be lost"
    assert contents(read) == before


def test_no_keys_are_written_over_the_model_that_they_are_for(read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("net.lanner", "keys.upload")
    before = contents(read)
    assert refusal(capsys, ["keygen", "keys.upload", "-o", "keys"])["where"] == "keys.upload"
    assert contents(read) == before


def test_no_file_is_written_for_two_options(read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refusal(capsys, ["estimate", "net.lanner", "--html", "drawn.svg", "--plot", str(read / "drawn.svg")])
    assert error["what"] == "this file would be written twice"


def test_a_model_is_written_beside_the_samples_that_it_is_calibrated_on(read: Path) -> None:
    # Twice: a model is no sample, and what another command wrote may be replaced.
    for _ in range(2):
        assert main(["compile", "net.onnx", "--calibration", "samples", "-o", "samples/net.lanner"]) == 0
    assert sorted(path.name for path in (read / "samples").iterdir()) == ["net.lanner", "x.npy"]


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
@pytest.mark.parametrize("command", READING)
def test_what_is_no_file_is_not_written(
    command: str, kind: str, read: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = read / "pipe"
    if kind == "a pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(os.devnull)
    error = refusal(capsys, [*command.split(), str(target)])
    assert error["what"] == "this is a device, a pipe or a socket, and a file is written"
    assert error["where"] == str(target)
    assert target.is_fifo() if kind == "a pipe" else target.is_symlink()


def test_pipe_among_examples_is_not_written(read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(read / "samples" / "image.npy")
    error = refusal(capsys, ["demo", "--save", "samples"])
    assert error["where"] == str(Path("samples") / "image.npy")
    assert not (read / "samples" / "digits.onnx").exists()


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (3, "inspect"),
        (3, "estimate"),
        (3, "serve"),
        (3, "keygen -o keys"),
        (3, "export -o net.public"),
        (3, "run x.npy"),
        (3, "compile --calibration x.npy -o new.lanner"),
        (6, "run net.lanner"),
        (6, "evaluate net.lanner --data"),
        (6, "compile net.onnx -o new.lanner --calibration"),
    ],
)
@pytest.mark.usefixtures("read")
def test_pipe_is_not_waited_for_as_an_input(code: int, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *others = command.split()
    # Of a kind that is read where inputs are.
    pipe = "fifo.npy" if code == 6 else "fifo"
    os.mkfifo(pipe)
    assert main([name, *others, pipe] if code == 6 else [name, pipe, *others]) == code
    told = capsys.readouterr().err
    assert told == f"error: {pipe}: this is a device, a pipe or a socket, and a file is needed; name a file\n"


@pytest.mark.parametrize("command", [READING[0], "export net.lanner -o"])
@pytest.mark.parametrize("is_there", [True, False])
def test_symbolic_link_is_followed(command: str, read: Path, tmp_path: Path, is_there: bool) -> None:
    target, link = tmp_path / "target", read / "link"
    if is_there:
        target.write_text("old")
    link.symlink_to(target)
    assert main([*command.split(), str(link)]) == 0
    assert link.is_symlink()
    assert target.is_file()
    assert target.read_bytes() not in (b"", b"old")


@pytest.mark.usefixtures("read")
def test_public_half_is_that_of_the_model() -> None:
    assert main(["export", "net.lanner", "-o", "new.public"]) == 0
    assert Path("new.public").read_bytes() == lanner.load("net.lanner").native.manifest().encode()


@pytest.mark.usefixtures("read")
def test_commands_to_be_copied_are_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "mein $modell.lanner"
    for network, given in (("lan", []), ("my net.toml", ["--network", "my net.toml"])):
        shutil.copy("net.toml", "my net.toml")
        assert main(["compile", "net.onnx", "--calibration", "x.npy", "-o", str(target), *given]) == 0
        told = capsys.readouterr().out
        commands = [shlex.split(command) for command in told.split("`")[1::2]]
        assert commands == [
            ["lanner", "estimate", str(target), "--network", network],
            ["lanner", "inspect", str(target)],
        ]
        for _, *command in commands:
            assert main(command) == 0
        capsys.readouterr()
    assert main(["keygen", "net.lanner", "-o", "my keys"]) == 0
    assert "give it with --keys 'my keys'" in capsys.readouterr().out


@pytest.mark.usefixtures("read")
def test_compile_says_what_mode_auto_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    told = {}
    for network in ("loopback", "wan"):
        arguments = ["compile", "net.onnx", "--calibration", "x.npy", "-o", "new.lanner", "--network", network]
        assert main(arguments) == 0
        told[lanner.load("new.lanner").manifest.mode] = capsys.readouterr().out
    for mode, text in told.items():
        (line,) = [line for line in text.splitlines() if line.startswith("mode auto")]
        assert (f"mode {mode} " in line.removeprefix("mode auto ")) == (mode != "auto")
        assert "latency" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("command", ["doctor", "doctor --json", "--version", "--help", "completion bash"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_is_full_is_told_as_such(command: str, unbuffered: str) -> None:
    if (command, unbuffered) == ("--help", "1"):
        pytest.skip("argparse says nothing of it")
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "lanner", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    *_, error = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert error.startswith("error: standard output cannot be written (No space left on device); ")
    assert "Traceback" not in ended.stderr
