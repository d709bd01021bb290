"""Whom a gateway lets in: names, origins, content types, tokens, TLS, sizes, and how many at once."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import stat
import time
import zlib
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

from helpers.authority import make_authority
from helpers.callers import JSON, Caller, request_of
from helpers.processes import HUNG, Serving, gateway, lanner
from lanner.datasets import load_digits

X = load_digits("test")[0]

with_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.0.2.1", "", "["])
@pytest.mark.parametrize("path", ["/", "/v2", "/ui/models", "/ui/progress?model=plain&ticket=0"])
def test_foreign_name_is_refused(call: Caller, host: str, path: str) -> None:
    answer = call.get(path, Host=host)
    assert answer.status == 421
    assert "not a name of the gateway" in answer.error


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:80"])
def test_names_of_this_machine_are_taken(call: Caller, host: str) -> None:
    assert call.get("/v2", Host=host).status == 200


def test_two_names_at_once_are_refused(call: Caller) -> None:
    connection = call.connect()
    connection.putrequest("GET", "/v2")
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status >= 400


def test_page_of_another_origin_is_refused(call: Caller) -> None:
    own = call.url
    foreign = ["http://evil.example", "null", own.replace("http:", "https:"), own + "0"]
    for origin in foreign:
        for answer in (call.infer("plain", request_of(X[:1]), Origin=origin), call.get("/v2", Origin=origin)):
            assert answer.status == 403
            assert "another origin" in answer.error
    assert call.infer("plain", request_of(X[:1]), Origin=own).status == 200


def test_request_of_another_site_is_refused(call: Caller) -> None:
    for site in ("cross-site", "same-site"):
        assert call.infer("plain", request_of(X[:1]), Sec_Fetch_Site=site).status == 403
        assert call.get("/v2/models/plain", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
    for site in ("same-origin", "none"):
        assert call.infer("plain", request_of(X[:1]), Sec_Fetch_Site=site).status == 200
    # A link to the page may be followed from anywhere.
    assert call.get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200


def test_no_other_origin_is_ever_allowed(call: Caller) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answers = [call("OPTIONS", "/v2/models/plain/infer", None, asked), call.get("/v2")]
    assert answers[0].status == 403
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/v2/models/plain/infer", "/ui/predict?model=plain"])
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"]
)
def test_content_types_of_forms_are_refused(call: Caller, path: str, kind: str) -> None:
    answer = call("POST", path, b"{}", {"Content-Type": kind})
    assert answer.status == 415
    assert "content type must be application/json or application/octet-stream" in answer.error


def test_content_type_may_be_left_out_by_programs_alone(call: Caller) -> None:
    body = json.dumps(request_of(X[:1])).encode()
    assert call("POST", "/v2/models/plain/infer", body, {}).status == 200
    for name, value in (("Origin", call.url), ("Sec-Fetch-Site", "same-origin"), ("Cookie", "a=b")):
        assert call("POST", "/v2/models/plain/infer", body, {name: value}).status == 415
    parameter = {"Content-Type": "application/json; charset=utf-8"}
    assert call("POST", "/v2/models/plain/infer", body, parameter).status == 200


def test_large_body_is_refused_before_it_is_read(call: Caller) -> None:
    connection = call.connect()
    connection.putrequest("POST", "/v2/models/plain/infer")
    for name, value in {**JSON, "Content-Length": str(10**12)}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert "the most that is read here" in json.load(answer)["error"]


def test_large_body_without_a_length_is_refused(call: Caller) -> None:
    connection = call.connect()
    chunks = (b"[" * 65536 for _ in range(64))
    try:
        connection.request("POST", "/v2/models/plain/infer", chunks, JSON, encode_chunked=True)
    except (BrokenPipeError, ConnectionResetError):
        pass  # It was refused before everything was sent.
    else:
        assert connection.getresponse().status == 413


def test_body_that_grows_is_refused(call: Caller) -> None:
    bomb = zlib.compress(b" " * (1 << 24))
    assert len(bomb) < 1 << 16
    answer = call("POST", "/v2/models/plain/infer", bomb, {**JSON, "Content-Encoding": "deflate"})
    assert (answer.status, "the most that is read here" in answer.error) == (413, True)
    answer = call("POST", "/v2/models/plain/infer", b"{}", {**JSON, "Content-Encoding": "br"})
    assert (answer.status, "send gzip, deflate, or none" in answer.error) == (415, True)


def test_log_has_nothing_of_inputs_results_or_tokens(behind: Serving, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-that-is-secret\n")
    (tmp_path / "token").chmod(0o600)
    options = ("--model", "digits", "--token-file", tmp_path / "token")
    with gateway(tmp_path / "gate", behind.address, *behind.pin, *options) as process:
        call = Caller(process.document["url"])
        bearer = {"Authorization": "Bearer a-token-that-is-secret"}
        name = call.infer("digits", request_of(X[:1]), **bearer).document["outputs"][2]["data"][0]
        wrong = request_of(np.full_like(X[:1], 1234.5))
        assert call.infer("digits", wrong, **bearer).status == 400
        assert call.get("/v2?token=in-the-address", Authorization="Bearer wrong-but-secret").status == 401
        assert call.get("/path-that-is-secret", **bearer).status == 404
        assert process.end(signal.SIGTERM) == 0
        log = process.log()
    assert "model digits, 1 prediction" in log
    assert "status 200" in log
    assert "status 400" in log
    assert "status 401" in log
    for said in (name, "1234", "secret", "in-the-address", "probability", "Traceback"):
        assert said not in log


def test_token_is_made_once_and_needed_everywhere_but_for_the_page(behind: Serving, tmp_path: Path) -> None:
    token_file = tmp_path / "deep.token"
    options = ("--model", "plain", "--token-file", token_file)
    with gateway(tmp_path / "gate", behind.address, *behind.pin, *options) as process:
        assert process.document["token_file"] == str(token_file)
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        token = token_file.read_text().strip()
        assert len(token) >= 40
        call = Caller(process.document["url"])
        for path in ("/", "/ui/page.js", "/ui/page.css"):
            assert call.get(path).status == 200
        wrong: tuple[dict[str, str], ...] = (
            {},
            {"Authorization": f"Bearer {token}x"},
            {"Authorization": token},
            {"Authorization": f"Basic {token}"},
        )
        for path in (
            "/v2",
            "/v2/health/live",
            "/v2/health/ready",
            "/v2/models/plain",
            "/ui/models",
            "/ui/progress?model=plain",
            "/none",
        ):
            for headers in wrong:
                answer = call("GET", path, None, headers)
                assert (answer.status, "needs the gateway's token" in answer.error) == (401, True)
                assert answer.headers["www-authenticate"].startswith("Bearer")
            assert call.get(f"{path}?token={token}").status == 401
        assert call.infer("plain", request_of(X[:1])).status == 401
        assert call.infer("plain", request_of(X[:1]), Authorization=f"Bearer {token}").status == 200
    with gateway(tmp_path / "gate", behind.address, *behind.pin, *options) as process:
        assert Caller(process.document["url"]).get("/v2", Authorization=f"bearer {token}").status == 200


def test_token_files_that_do_not_serve_are_misuse(tmp_path: Path) -> None:
    short, open_to_all = tmp_path / "short", tmp_path / "open"
    for path, text, mode in ((short, "abc", 0o600), (open_to_all, "x" * 40, 0o644)):
        path.write_text(text)
        path.chmod(mode)
    for path, sentence in (
        (short, "no token of 20 to 512"),
        (open_to_all, "others may read it"),
        (tmp_path / "none" / "token", "cannot be used"),
    ):
        result = lanner("gateway", "127.0.0.1:1", "--insecure-plaintext", "--token-file", path)
        assert (result.code, sentence in result.errors) == (2, True), result.errors


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "gate.example:0"])
def test_other_machines_are_let_in_with_tls_alone(listen: str) -> None:
    result = lanner("gateway", "127.0.0.1:1", "--insecure-plaintext", "--listen", listen)
    assert result.code == 2
    assert "give --tls-cert and --tls-key" in result.errors


@with_openssl
def test_off_loopback_tls_and_a_token(behind: Serving, tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "ca")
    certificate, key = authority.issue("gate", "serverAuth")
    state = tmp_path / "gate"
    tls = ("--tls-cert", certificate, "--tls-key", key, "--listen", "0.0.0.0:0", "--name", "gate.example")
    with gateway(state, behind.address, *behind.pin, "--model", "plain", *tls) as process:
        token_file = Path(process.document["token_file"])
        assert token_file == state / "gateway.token"
        bearer = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
        port = process.document["url"].rsplit(":", 1)[1]
        call = Caller(f"https://localhost:{port}", authority.certificate)
        assert call.get("/v2").status == 401
        assert call.infer("plain", request_of(X[:1]), **bearer).status == 200
        assert call.infer("plain", request_of(X[:1]), Origin=call.url, **bearer).status == 200
        assert call.infer("plain", request_of(X[:1]), Origin=call.url.replace("https", "http"), **bearer).status == 403
        for host, status in (("gate.example", 200), ("192.0.2.1", 200), ("evil.example", 421)):
            assert call.get("/v2", Host=host, **bearer).status == status
        with pytest.raises(ssl.SSLCertVerificationError):
            Caller(f"https://localhost:{port}").get("/v2")
        old = ssl.create_default_context(cafile=authority.certificate)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("localhost", int(port))) as raw, pytest.raises(ssl.SSLError):
            old.wrap_socket(raw, server_hostname="localhost")


@with_openssl
def test_certificates_that_do_not_serve_are_misuse(tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "ca")
    certificate, key = authority.issue("gate", "serverAuth")
    (tmp_path / "junk.pem").write_text("no certificate")
    _, other = authority.issue("other", "serverAuth")
    for cert, its_key in ((certificate, None), (tmp_path / "junk.pem", key), (certificate, other), ("none.pem", key)):
        given = ("--tls-cert", cert) if its_key is None else ("--tls-cert", cert, "--tls-key", its_key)
        result = lanner("gateway", "127.0.0.1:1", "--insecure-plaintext", *given)
        assert result.code == 2, result.errors


def test_only_so_many_wait(behind: Serving, tmp_path: Path) -> None:
    options = ("--model", "plain", "--max-waiting", 1)
    with gateway(tmp_path / "gate", behind.address, *behind.pin, *options) as process:
        call = Caller(process.document["url"])
        # Two callers that have not sent all of their bodies hold both places.
        halves = [half_a_request(call) for _ in range(2)]
        deadline = time.monotonic() + HUNG
        while (answer := call.infer("plain", request_of(X[:1]))).status == 200:
            assert time.monotonic() < deadline
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert "busy with 2 requests" in answer.error
        assert call.get("/v2/health/ready").status == 200
        for connection, rest in halves:
            connection.send(rest)
            assert connection.getresponse().status == 200
        assert call.infer("plain", request_of(X[:1])).status == 200


def half_a_request(call: Caller) -> tuple[HTTPConnection, bytes]:
    """A connection on which half of a request was sent, and the other half."""
    body = json.dumps(request_of(X[:1])).encode()
    connection = call.connect()
    connection.putrequest("POST", "/v2/models/plain/infer")
    for name, value in {**JSON, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body[:100])
    return connection, body[100:]
