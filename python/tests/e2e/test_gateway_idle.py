"""A gateway that has a thousand connections which send nothing: callers with the token, and probes, are answered."""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from helpers.authority import make_authority
from helpers.callers import Caller, request_of
from helpers.models import tiny_samples
from helpers.processes import gateway, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="open files are not counted there")

IDLE = 1000

X = tiny_samples(1, seed=5)


@pytest.fixture
def room() -> None:
    """Open files for so many connections."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * IDLE:
        pytest.skip("this system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * IDLE), hard))


@pytest.mark.usefixtures("room")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_who_has_the_token_is_answered_within_a_second(tiny_label: Path, tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "ca")
    certificate, key = authority.issue("gate", "serverAuth")
    tls = ("--tls-cert", certificate, "--tls-key", key, "--listen", "0.0.0.0:0", "--health", "127.0.0.1:0")
    with (
        serving(tmp_path / "state", tiny_label) as server,
        gateway(tmp_path / "gate", server.address, *server.pin, *tls) as gate,
        ExitStack() as stack,
    ):
        bearer = {"Authorization": f"Bearer {Path(gate.document['token_file']).read_text().strip()}"}
        port = urlsplit(gate.document["url"]).port
        assert port is not None
        call = Caller(f"https://localhost:{port}", authority.certificate)
        assert call.infer("tiny_label", request_of(X, "x"), **bearer).status == 200
        for number in range(IDLE):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            if number % 20 == 0:
                # The beginning of a handshake that goes no further.
                connection.sendall(b"\x16\x03\x01\x02\x00")
        seconds = []
        for _ in range(3):
            began = time.monotonic()
            assert call.infer("tiny_label", request_of(X, "x"), **bearer).status == 200
            seconds.append(time.monotonic() - began)
        # The machine may have other work for a while.
        assert min(seconds) < 1.0
        assert call.get("/v2/health/live", **bearer).status == 200
        health = Caller(f"http://{gate.document['health']}")
        assert [health.get(path).status for path in ("/healthz", "/readyz")] == [200, 200]
        assert health.get("/v2/health/live").status == 404
        assert gate.end(signal.SIGTERM) == 0
        assert "Traceback" not in gate.log()


def test_gateway_needs_open_files_for_some_connections() -> None:
    import resource
    import subprocess

    command = [sys.executable, "-m", "lanner", "gateway", "127.0.0.1:1", "--insecure-plaintext"]
    few = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert few.returncode == 2
    assert "the system allows 200 open files, and a gateway needs 288; raise that" in few.stderr
