"""Clients in a network that others are reached from through an HTTP proxy alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.processes import lanner, lanner_process, serving
from helpers.proxies import proxying
from lanner import load

#: A name that this machine does not resolve, and the proxy takes for itself.
FAR = "models.invalid"


@pytest.mark.parametrize("way", ["option", "environment"])
def test_a_prediction_goes_through_a_proxy(
    tmp_path: Path, tiny_label: Path, samples_file: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "state", tiny_label) as server, proxying("ann:s@cret") as proxy:
        port = server.address.rsplit(":", 1)[1]
        url = f"http://ann:s%40cret@{proxy.address}"
        options: tuple[str, ...] = ("--proxy", url)
        if way == "environment":
            monkeypatch.setenv("HTTPS_PROXY", url)
            options = ()
        result = lanner_process("predict", f"{FAR}:{port}", samples_file, *server.pin, *options)
        assert result.code == 0, result.errors
        assert "cret" not in result.errors
        expected = load(tiny_label).predict_fixed(np.load(samples_file)["x"]).argmax(1)
        assert [prediction["label"] for prediction in result.document["predictions"]] == expected.tolist()
        assert proxy.asked == [f"{FAR}:{port}"]
        assert proxy.carried > sum(
            phase["bytes_sent"] + phase["bytes_received"]
            for phase in result.document["predictions"][0]["phases"].values()
        )


def test_what_a_proxy_refuses_says_what_to_do(tmp_path: Path, samples_file: Path) -> None:
    pin = ("--pin", "sha256:" + "0" * 64)
    with proxying("ann:secret") as proxy:
        result = lanner(
            "predict", FAR, samples_file, *pin, "--proxy", f"http://{proxy.address}", "--state-dir", tmp_path
        )
    assert result.code == 5
    assert "wants a name and a password" in result.errors
    assert "--proxy" in result.errors
    result = lanner("predict", FAR, samples_file, *pin, "--proxy", "socks5://ann:secret@a:1", "--state-dir", tmp_path)
    assert result.code == 2
    assert "socks5 proxies are not supported" in result.errors
    assert "secret" not in result.errors


def test_python_takes_a_proxy_and_none(tmp_path: Path, tiny_label: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "state", tiny_label) as server, proxying() as proxy:
        pin = server.pin[1]
        with library.Client(server.address, pin=pin, proxy=proxy.address) as client:
            assert client.manifest.name == "tiny_label"
        assert len(proxy.asked) == 1
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
        # This machine itself is reached without one.
        assert library.list_models(server.address, pin=pin)[0].name == "tiny_label"
        with pytest.raises(library.TransportError, match=r"127\.0\.0\.1:9"):
            library.list_models(FAR, pin=pin)
        with pytest.raises(library.TransportError, match=FAR):
            library.list_models(FAR, pin=pin, proxy="none")
