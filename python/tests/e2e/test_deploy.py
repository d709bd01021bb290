"""The programs of deploy/ with a real server: its certificates are trusted, and its health is told."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.documents import ROOT, free_address
from helpers.models import tiny_samples
from helpers.processes import HUNG, lanner, serving

DEPLOY = ROOT / "deploy"


def health(*arguments: object) -> int:
    """The exit code of the health check."""
    command = [sys.executable, str(DEPLOY / "health.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=HUNG, check=False).returncode


def make_secrets(folder: Path, *names: str) -> None:
    """Run the script that makes certificates."""
    subprocess.run([str(DEPLOY / "secrets.sh"), str(folder), *names], check=True, timeout=HUNG)


def test_server_with_these_secrets_is_trusted_and_healthy(tiny_label: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    secrets = tmp_path / "secrets"
    make_secrets(secrets)
    x, metrics = tmp_path / "x.npy", free_address()
    np.save(x, tiny_samples(1, seed=5))
    assert health(f"http://{metrics}/metrics") == 1
    shown = ("--tls-cert", secrets / "server.pem", "--tls-key", secrets / "server.key")
    with serving(tmp_path / "state", tiny_label, *shown, "--metrics", metrics) as server:
        assert health(f"http://{metrics}/metrics") == 0
        assert health(f"http://{metrics}/nothing") == 1
        address = server.address.replace("127.0.0.1", "localhost")
        trusted = lanner("predict", address, x, "--ca", secrets / "authority.pem")
        assert trusted.code == 0, trusted.errors
        # The authority vouches for names, and this is none of them.
        assert lanner("predict", server.address, x, "--ca", secrets / "authority.pem").code == 5


#: Has the kernel refuse memory that is writable and executable, as MemoryDenyWriteExecute does; becomes a command.
#: Exits 77 where the kernel cannot (PR_SET_MDWE came with Linux 6.3).
SHUT_OFF = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_GAIN, 0, 0, 0):
    sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_prediction_needs_no_memory_that_is_writable_and_executable(tiny_label: Path, tmp_path: Path) -> None:
    # The unit says so; what needed such memory would die under it.
    assert "MemoryDenyWriteExecute=yes" in (DEPLOY / "lanner.service").read_text(encoding="utf-8").splitlines()
    x = tmp_path / "x.npy"
    np.save(x, tiny_samples(1, seed=5))

    def shut_off(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", SHUT_OFF, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=False)

    allowed = shut_off("-c", "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)")
    if allowed.returncode == 77:
        pytest.skip("this kernel cannot refuse such memory")
    assert "PermissionError" in allowed.stderr
    done = shut_off("-m", "lanner", "run", tiny_label, x)
    assert done.returncode == 0, done.stderr


def test_secrets_are_the_owners_and_stay(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    make_secrets(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {f"{name}.{kind}" for name in ("server", "gateway", "authority") for kind in ("pem", "key")} <= set(before)
    assert len(before["gateway.token"].strip()) == 64
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())
    make_secrets(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
