"""What a person sees: results on standard output, all else on standard error, and what became of sessions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lanner as library
from helpers.documents import free_address
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import HUNG, gateway, lanner, serving
from lanner import ImageDescription

SOME_PIN = "sha256:" + "5a" * 32


def people(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``lanner ...`` as a person does."""
    command = [sys.executable, "-m", "lanner", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=False)


class Logging:
    """A server as a person starts it: what it printed, and its log so far."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self._out, self._log = folder / "out", folder / "log"

    @property
    def out(self) -> str:
        """Its standard output."""
        return self._out.read_text()

    def log(self, sentence: str) -> str:
        """The line of its log in which a sentence stands, which may be yet to come."""
        deadline = time.monotonic() + HUNG
        while time.monotonic() < deadline:
            for line in self._log.read_text().splitlines():
                if sentence in line:
                    return line
            time.sleep(0.1)
        pytest.fail(f"{sentence!r} is not in {self._log.read_text()!r}")

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return str(re.findall(r"^listening on (\S+)", self.out, re.MULTILINE)[0])

    @property
    def pin(self) -> tuple[str, str]:
        """The trust options of its clients."""
        return "--pin", re.findall(r"sha256:\w+", self.out)[0]


@contextmanager
def logging_server(folder: Path, *arguments: object) -> Iterator[Logging]:
    """Run ``lanner serve`` without ``--json`` on a free port until the block ends."""
    command = [sys.executable, "-m", "lanner", "serve", *map(str, arguments), "--listen", "127.0.0.1:0"]
    command += ["--state-dir", str(folder / "state")]
    with (folder / "out").open("wb") as out, (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=out, stderr=log)
    server = Logging(process, folder)
    try:
        while "lanner predict" not in server.out:
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()


def test_a_server_logs_sessions_and_refusals_and_ends_on_ctrl_c(
    tmp_path: Path, tiny_label: Path, tiny_logits: Path, samples_file: Path
) -> None:
    with logging_server(tmp_path, tiny_label, f"second={tiny_logits}") as server:
        result = people("predict", server.address, samples_file, "--model", "tiny_label", *server.pin)
        assert result.returncode == 0
        line = server.log("model tiny_label, 3 predictions")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d session \d+, 127\.0\.0\.1:\d+; ", line)
        assert line.endswith("; done")
        result = people("predict", server.address, samples_file, "--model", "first", *server.pin)
        assert (result.returncode, result.stdout) == (4, "")
        assert "has no model first; it has tiny_label, second; name one of these with --model" in result.stderr
        assert server.log("refused").endswith('there is no model "first"')
        assert server.log("asked for the models' names")
        result = people("predict", server.address, samples_file, *server.pin)
        assert "several models, and none was named; it has tiny_label, second" in result.stderr
        result = people("predict", server.address, samples_file, "--insecure-plaintext")
        assert result.returncode == 5
        assert "the server speaks TLS, and this client does without; leave --insecure-plaintext out" in result.stderr
        assert server.log("no connection").endswith("the peer does without TLS, and this side asks for it")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(HUNG) == 0
        assert server.log("stopped") == "stopped"
        assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_client_with_tls_is_told_that_the_server_does_without(
    tmp_path: Path, tiny_label: Path, samples_file: Path
) -> None:
    with logging_server(tmp_path, tiny_label, "--insecure-plaintext") as server:
        result = people("predict", server.address, samples_file, "--pin", SOME_PIN)
        assert result.returncode == 5
        assert "the server runs without TLS, but this client requires it" in result.stderr
        assert server.log("refused").endswith("the peer speaks TLS, and this side does without")


def test_who_asks_a_gateway_is_told_so(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", tiny_label) as behind, gateway(tmp_path, behind.address, *behind.pin) as gate:
        address = gate.document["url"].removeprefix("http://")
        result = people("predict", address, samples_file, *behind.pin)
    assert result.returncode == 5
    assert "a web server answered at this address, not a lanner server; give the address" in result.stderr


def test_the_systems_reasons_have_no_numbers(samples_file: Path) -> None:
    result = people("predict", free_address(), samples_file, "--pin", SOME_PIN)
    assert result.returncode == 5
    assert "Connection refused; check the address" in result.stderr


def test_results_are_on_standard_output_without_empty_columns(tiny_label: Path, samples_file: Path) -> None:
    result = people("run", tiny_label, samples_file)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split("\n")[0].split() == ["input", "index", "label", "class"]
    assert "offline" in result.stdout
    assert "-\n" not in result.stdout


def test_a_folder_of_pictures_calibrates_and_is_classified(tmp_path: Path, tiny_onnx: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for index, sample in enumerate(tiny_samples(3)):
        Image.fromarray((sample[0] * 255).astype(np.uint8)).save(pictures / f"{index}.png")
    (pictures / "labels.csv").write_text("picture,label\n")
    (tmp_path / "image.toml").write_text("channels = 1\nsize = [8, 8]\n")
    result = people("run", tiny_onnx, pictures, "--calibration", pictures, "--image", tmp_path / "image.toml")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:4]]
    assert [Path(row[0]).name for row in rows] == ["0.png", "1.png", "2.png"]
    x = np.stack([ImageDescription(1, (8, 8)).load(path, (1, 8, 8)) for path in sorted(pictures.glob("*.png"))])
    expected = library.compile(tiny_classifier(), x, image=ImageDescription(1, (8, 8))).predict_fixed(x).argmax(1)
    assert [int(row[1]) for row in rows] == expected.tolist()


@pytest.mark.parametrize("arguments", [["inspect", "MODEL"], ["inspect", "MODEL", "--json"], ["--version"]])
def test_a_closed_pipe_is_no_traceback(tiny_label: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "lanner", *(str(tiny_label) if word == "MODEL" else word for word in arguments)]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=HUNG, check=False)
    os.close(writer)
    assert result.stderr == ""


def test_a_client_learns_the_names_in_the_document_too(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "state", tiny_label) as server:
        result = lanner("predict", server.address, samples_file, "--model", "other", *server.pin)
    assert result.code == 4
    assert result.document["error"]["what"] == "the server has no model other; it has tiny_label"
