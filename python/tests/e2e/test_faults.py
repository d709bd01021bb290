"""Bad input and misbehaving peers: one sentence, its exit code, no hang, and the server keeps serving others."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from helpers.models import tiny_samples
from helpers.peers import answer_http, hang_up, peer, stall, talk_garbage
from helpers.processes import HUNG, Serving, lanner, serving

# Signals of other tests, and a handler that a job in the background has not, would disturb them.
pytestmark = pytest.mark.alone

SOME_PIN = "sha256:" + "5a" * 32


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_label: Path) -> Iterator[Serving]:
    """One server for every test here: what one client does must not harm the next."""
    with serving(tmp_path_factory.mktemp("state"), tiny_label, "--timeout", 3) as running:
        yield running


def still_serves(server: Serving, samples_file: Path) -> bool:
    return lanner("predict", server.address, samples_file, *server.pin).code == 0


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((8, 8)), "(8, 8)"),
        (np.zeros((2, 1, 8, 9)), "(2, 1, 8, 9)"),
        (np.full((1, 8, 8), np.nan), "nan"),
        (np.full((1, 8, 8), np.inf), "inf"),
        (np.full((1, 8, 8), 1e6), "accepted range"),
        (np.zeros((1, 8, 8), dtype=complex), "not numbers"),
    ],
    ids=["shape", "batch", "nan", "infinite", "range", "complex"],
)
def test_bad_input_exits_6(server: Serving, tmp_path: Path, array: np.ndarray, sentence: str) -> None:
    np.save(tmp_path / "x.npy", array)
    result = lanner("predict", server.address, tmp_path / "x.npy", *server.pin)
    assert result.code == 6
    error = result.document["error"]
    assert error["kind"] == "input"
    assert sentence in error["what"]
    assert "x.npy" in error["where"]


def test_unreadable_input_exits_6_without_connecting(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"junk")
    result = lanner("predict", "127.0.0.1:1", tmp_path / "x.npy", "--pin", SOME_PIN)
    assert result.code == 6


def test_picture_for_a_model_without_description_exits_6(server: Serving, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    result = lanner("predict", server.address, tmp_path / "a.png", *server.pin)
    assert result.code == 6
    assert "does not describe images; pass .npy of shape (1,8,8)" in result.errors


def test_one_bad_input_stops_all_before_any_is_sent(server: Serving, tmp_path: Path, samples_file: Path) -> None:
    np.save(tmp_path / "bad.npy", np.zeros((3, 3)))
    result = lanner("predict", server.address, samples_file, tmp_path / "bad.npy", *server.pin)
    assert result.code == 6
    assert result.document["predictions"] == []


def test_public_half_lets_inputs_be_checked_before_connecting(tiny_label: Path, tmp_path: Path) -> None:
    assert lanner("export", tiny_label, "-o", tmp_path / "net.public").code == 0
    np.save(tmp_path / "bad.npy", np.zeros((3, 3)))
    arguments = ["--pin", SOME_PIN, "--pin-model", tmp_path / "net.public"]
    assert lanner("predict", "127.0.0.1:1", tmp_path / "bad.npy", *arguments).code == 6


def test_wrong_pin_exits_5(server: Serving, samples_file: Path) -> None:
    result = lanner("predict", server.address, samples_file, "--pin", SOME_PIN)
    assert result.code == 5
    assert result.document["error"]["kind"] == "transport"
    assert still_serves(server, samples_file)


def test_authority_that_did_not_sign_exits_5(server: Serving, samples_file: Path, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    openssl = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl += ["-keyout", str(tmp_path / "ca.key"), "-out", str(authority), "-days", "2", "-subj", "/CN=other"]
    try:
        subprocess.run(openssl, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    assert lanner("predict", server.address, samples_file, "--ca", authority).code == 5


def test_unknown_model_exits_4(server: Serving, samples_file: Path) -> None:
    result = lanner("predict", server.address, samples_file, "--model", "absent", *server.pin)
    assert result.code == 4
    assert result.document["error"]["kind"] == "peer"


def test_another_commitment_exits_4(server: Serving, samples_file: Path) -> None:
    result = lanner("predict", server.address, samples_file, "--pin-model", "12" * 32, *server.pin)
    assert result.code == 4
    assert still_serves(server, samples_file)


def test_no_server_exits_5(samples_file: Path) -> None:
    result = lanner("predict", "127.0.0.1:1", samples_file, "--pin", SOME_PIN)
    assert result.code == 5
    assert "127.0.0.1:1" in result.errors


def test_unknown_host_exits_5(samples_file: Path) -> None:
    assert lanner("predict", "no-such-host.invalid", samples_file, "--pin", SOME_PIN).code == 5


@pytest.mark.parametrize("behave", [hang_up, stall, talk_garbage, answer_http], ids=lambda peer: peer.__name__)
@pytest.mark.parametrize("trust", [("--pin", SOME_PIN), ("--insecure-plaintext",)], ids=["tls", "plaintext"])
def test_misbehaving_server_is_an_error_in_time(
    behave: Callable[[socket.socket], None], trust: tuple[str, ...], samples_file: Path
) -> None:
    started = time.monotonic()
    with peer(behave) as address:
        result = lanner("predict", address, samples_file, *trust, "--timeout", 2)
    assert result.code in (4, 5), result.document
    if behave in (hang_up, stall):
        assert result.code == 5
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 256, b"\x16\x03\x01\xff\xff"])
def test_misbehaving_client_does_not_harm_others(server: Serving, samples_file: Path, sent: bytes) -> None:
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        assert still_serves(server, samples_file)
    assert still_serves(server, samples_file)


def test_client_that_vanishes_does_not_harm_others(server: Serving, samples_file: Path) -> None:
    command = [sys.executable, "-m", "lanner", "predict", server.address, str(samples_file), *server.pin]
    for delay in (0.5, 0.8, 1.1):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            time.sleep(delay)
            process.kill()
    assert still_serves(server, samples_file)


def test_server_that_dies_exits_5_and_names_what_was_done(tmp_path: Path, tiny_label: Path) -> None:
    np.save(tmp_path / "many.npy", tiny_samples(20_000))
    with serving(tmp_path / "state", tiny_label) as server:
        command = [sys.executable, "-m", "lanner", "predict", server.address, str(tmp_path / "many.npy")]
        command += [*server.pin, "--timeout", "5", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            time.sleep(4)
            server.process.kill()
            output, _ = process.communicate(timeout=HUNG)
    assert process.returncode == 5
    document = json.loads(output)
    assert document["error"]["kind"] == "transport"
    assert document["predictions"]


def test_interrupt_ends_a_waiting_client(samples_file: Path) -> None:
    with peer(stall) as address:
        command = [sys.executable, "-m", "lanner", "predict", address, str(samples_file), "--pin", SOME_PIN, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(2)
            started = time.monotonic()
            os.kill(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=HUNG)
    assert process.returncode == 130
    assert time.monotonic() - started < 5
    assert '"kind": "interrupted"' in output


def test_address_in_use_exits_5(server: Serving, tiny_label: Path) -> None:
    result = lanner("serve", tiny_label, "--listen", server.address)
    assert result.code == 5
    assert server.address in result.errors


def test_damaged_model_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "net.lanner").write_bytes(b"PK\x05\x06" + bytes(18))
    result = lanner("serve", tmp_path / "net.lanner", "--listen", "127.0.0.1:0")
    assert result.code == 3


def test_server_of_run_does_not_outlive_it(tiny_label: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", tiny_samples(20_000))
    command = [sys.executable, "-m", "lanner", "run", str(tiny_label), str(tmp_path / "many.npy")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        time.sleep(4)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            process.kill()
            pytest.skip("this system does not list a process's children")
        (child,) = map(int, children.read_text().split())
        process.kill()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
