"""The client for browsers: in Node, and the page in Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import lanner
from bench.chromium import Tab, browsing, chromium
from helpers.authority import make_authority
from helpers.digits import MODELS, NAMES, PICTURE, save_picture
from lanner.datasets import load_digits
from lanner.web.files import is_built

X, LABELS = load_digits("test")

CLIENT = Path(lanner.__file__).parent / "web" / "client"

needs_client = pytest.mark.skipif(not is_built(), reason="the client for browsers is not built: run `make web`")
needs_browser = pytest.mark.skipif(chromium() is None, reason="there is no Chromium to show the page")
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(
    NODE is None or subprocess.run([NODE, "-e", "WebSocket"], capture_output=True, check=False).returncode != 0,
    reason="there is no Node that has WebSockets",
)

#: Strokes of a seven, in parts of the drawing area.
SEVEN = ((0.3, 0.25), (0.5, 0.25), (0.7, 0.25), (0.62, 0.4), (0.52, 0.6), (0.45, 0.8))


@pytest.fixture(scope="module")
def model() -> lanner.Model:
    x = load_digits("train")[0][:128]
    described = {"image": PICTURE, "classes": list(NAMES), "name": "digits"}
    return lanner.compile(MODELS / "mnist_a.onnx", x, input_range=(0, 1), output="label", **described)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(model: lanner.Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lanner.Server]:
    state = tmp_path_factory.mktemp("state") / "state"
    with lanner.Server(model, state_dir=state, web="127.0.0.1:0", web_without_origin=True) as running:
        yield running


def get(server: lanner.Server, path: str, **headers: str) -> Any:  # noqa: ANN401 - an answer of HTTP
    return urlopen(Request(f"http://{server.web_address}{path}", headers=headers))


def test_files_have_their_headers_and_other_names_are_refused(server: lanner.Server) -> None:
    with pytest.raises(HTTPError, match="421"):
        get(server, "/", Host="evil.example")
    with pytest.raises(HTTPError, match="404"):
        get(server, "/_native.abi3.so")
    if is_built():
        with get(server, "/server.json") as answer:
            told = json.load(answer)
            assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert told["pin"] == server.fingerprint
        assert told["models"] == [{"name": "digits", "commitment": server.models["digits"].commitment}]


def test_one_address_serves_both(model: lanner.Model, tmp_path: Path) -> None:
    from helpers.documents import free_address

    address = free_address()
    with lanner.Server(model, address, state_dir=tmp_path / "state", web=address) as server:
        assert server.web_address == server.address
        with pytest.raises(HTTPError, match="404"):
            get(server, "/nothing")
        with lanner.Client(address, pin=server.fingerprint) as client:
            assert client.predict(X[0]).label is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"web": "127.0.0.1:0", "web_origins": ["page.example"]}, "not an origin"),
        ({"web": "127.0.0.1:0", "web_origins": ["https://page.example/"]}, "not an origin"),
        ({"web_origins": ["https://page.example"]}, "give web"),
        ({"web": "127.0.0.1:0", "web_cert": "chain.pem"}, "needs its key"),
    ],
)
def test_what_is_wrong_is_said(model: lanner.Model, tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(lanner.MisuseError, match=said):
        lanner.Server(model, state_dir=tmp_path / "state", **arguments)


def run(script: str, given: object) -> Any:  # noqa: ANN401 - what the script says
    """What a script for Node prints in JSON, which finds a document as its argument."""
    command = [str(NODE), "--input-type=module", "-e", script, json.dumps(given)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@needs_client
@needs_node
@pytest.mark.slow
def test_node_gets_what_the_native_client_gets(server: lanner.Server) -> None:
    script = f"""
        import {{ Client, look }} from {json.dumps((CLIENT / "lanner.js").as_uri())};
        const given = JSON.parse(process.argv[1]);
        const options = {{ pin: given.pin, pinModel: given.commitment }};
        const model = await look(given.address, options);
        const wrong = await look(given.address, {{ pin: "sha256:" + "0".repeat(64) }}).catch((error) => error);
        const small = await look(given.address, {{ ...options, maxMemory: 1000 }}).catch((error) => error);
        const client = await Client.connect(given.address, options);
        const made = [];
        for (const sample of given.samples) made.push((await client.predict(sample)).label);
        await client.close();
        const {{ kind, message }} = wrong;
        console.log(JSON.stringify({{ name: model.name, made, kind, message, small: small.message }}));
        process.exit(0);
    """
    given = {
        "address": f"ws://{server.web_address}",
        "pin": server.fingerprint,
        "commitment": server.models["digits"].commitment,
        "samples": [sample.ravel().tolist() for sample in X[:3]],
    }
    told = run(script, given)
    with lanner.Client(server.address, pin=server.fingerprint) as client:
        assert told["made"] == [client.predict(sample).label for sample in X[:3]]
    assert told["name"] == "digits"
    assert told["kind"] == "transport"
    assert "not the pinned" in told["message"]
    assert "raise the limit with `maxMemory`" in told["small"]


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Files of certificates and keys: of a client that a server knows, and of another authority's."""
    folder = tmp_path_factory.mktemp("authorities")
    return {name: make_authority(folder / name).issue("client", "clientAuth") for name in ("known", "other")}


@pytest.fixture(scope="module")
def choosy(
    model: lanner.Model, identities: dict[str, tuple[Path, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lanner.Server]:
    """A server that lets known clients in."""
    known, state = identities["known"][0].parent / "ca.pem", tmp_path_factory.mktemp("state") / "state"
    with lanner.Server(model, state_dir=state, web="127.0.0.1:0", web_without_origin=True, client_ca=known) as running:
        yield running


@needs_client
@needs_node
@needs_openssl
@pytest.mark.slow
def test_node_shows_its_certificate(choosy: lanner.Server, identities: dict[str, tuple[Path, Path]]) -> None:
    script = f"""
        import {{ Client }} from {json.dumps((CLIENT / "lanner.js").as_uri())};
        const given = JSON.parse(process.argv[1]);
        const {{ known, other, sample, pin, address }} = given;
        const ask = async (identity) => {{
          try {{
            const client = await Client.connect(address, {{ pin, ...identity }});
            const {{ label }} = await client.predict(sample);
            await client.close();
            return label;
          }} catch (error) {{
            return error.kind + ": " + error.message;
          }}
        }};
        const [certificate, key] = known;
        const told = {{
          texts: await ask({{ certificate, key }}),
          files: await ask({{ certificate: new Blob([certificate]), key: new Blob([key]) }}),
          none: await ask({{}}),
          other: await ask({{ certificate: other[0], key: other[1] }}),
          half: await ask({{ certificate }}),
          mixed: await ask({{ certificate, key: other[1] }}),
          line: await ask({{ certificate, key: key.replaceAll("\\n", "") }}),
          number: await ask({{ certificate, key: 7 }}),
          huge: await ask({{ certificate, key: new Blob([new Uint8Array(300000)]) }}),
        }};
        console.log(JSON.stringify(told));
        process.exit(0);
    """
    texts = {name: [path.read_text() for path in paths] for name, paths in identities.items()}
    given = {
        **texts,
        "address": f"ws://{choosy.web_address}",
        "pin": choosy.fingerprint,
        "sample": X[0].ravel().tolist(),
    }
    told = run(script, given)
    certificate, key = identities["known"]
    with lanner.Client(choosy.address, pin=choosy.fingerprint, cert=certificate, key=key) as client:
        label = client.predict(X[0]).label
    assert (told["texts"], told["files"]) == (label, label)
    assert told["none"].startswith("transport: ")
    assert "requires one" in told["none"]
    assert told["other"].startswith("transport: ")
    assert "certificate" in told["other"]
    for name, said in (
        ("half", "belong together"),
        ("mixed", "not the key of"),
        ("line", "not in PEM form"),
        ("number", "neither a text nor a file"),
        ("huge", "300000 bytes"),
    ):
        # As of the native client, what is wrong with a file is a failure to connect.
        kind = "transport" if name in ("mixed", "line") else "misuse"
        assert told[name].startswith(f"{kind}: "), told[name]
        assert said in told[name]
    secret = texts["known"][1].splitlines()[1]
    assert not any(secret[:12] in str(answer) for answer in told.values())


@needs_client
@needs_browser
@needs_openssl
@pytest.mark.slow
def test_the_page_asks_for_the_certificate_of_a_known_client(
    choosy: lanner.Server, identities: dict[str, tuple[Path, Path]]
) -> None:
    with browsing() as tab:
        tab.open(f"http://localhost:{str(choosy.web_address).rsplit(':', 1)[1]}/")
        tab.wait("document.getElementById('status').innerText.includes('known clients only')")
        assert tab.value("document.getElementById('more').open && document.getElementById('ask').hidden")
        for who, certificate, key in ((who, *paths) for who, paths in reversed(identities.items())):
            tab.choose_file("certificate", certificate)
            tab.choose_file("key", key)
            tab.wait("!document.getElementById('ask').hidden || document.getElementById('error').innerText")
            assert ("certificate" in tab.text("error")) == (who == "other")
            tab.click("no-identity")
        tab.choose_file("certificate", certificate)
        assert "other file" in tab.text("status")
        tab.choose_file("key", key)
        tab.wait("!document.getElementById('ask').hidden")
        _draw(tab, SEVEN)
        tab.click("send")
        _answered(tab)
        assert tab.text("answer") == "seven"


@needs_client
@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_a_digit_is_drawn_and_its_label_comes_back(server: lanner.Server, tmp_path: Path, phone: bool) -> None:
    with browsing() as tab:
        tab.view(*((360, 740) if phone else (1200, 900)), mobile=phone)
        tab.open(f"http://localhost:{str(server.web_address).rsplit(':', 1)[1]}/")
        tab.wait("!document.getElementById('ask').hidden || document.getElementById('error').innerText")
        assert tab.text("error") == ""
        _draw(tab, SEVEN)
        tab.click("send")
        _answered(tab)
        assert tab.text("answer") == "seven"
        # A picture, which both clients read alike.
        picture = save_picture(tmp_path / "digit.png", X[0])
        tab.value("document.querySelector('input[value=file]').click()")
        tab.choose_file("chosen", picture)
        tab.click("send")
        _answered(tab)
        with lanner.Client(server.address, pin=server.fingerprint) as client:
            label = client.predict(PICTURE.load(picture, (1, 28, 28))).label
        assert label is not None
        assert tab.text("answer") == NAMES[label]
        # It stays within the width, asks its server alone, and has nothing to complain of.
        assert tab.value("document.documentElement.scrollWidth <= window.innerWidth")
        assert {re.split("[/?]", request)[2] for request in tab.requests if not request.startswith("blob:")} == {
            f"localhost:{str(server.web_address).rsplit(':', 1)[1]}"
        }
        assert tab.complaints == []


def _draw(tab: Tab, strokes: tuple[tuple[float, float], ...]) -> None:
    left, top, side = tab.value(
        "(() => { const e = document.getElementById('canvas'); e.scrollIntoView({block: 'center'});"
        "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    tab.drag([(left + x * side, top + y * side) for x, y in strokes])


def _answered(tab: Tab) -> None:
    tab.wait("document.getElementById('send').disabled || document.getElementById('error').innerText")
    tab.wait("!document.getElementById('send').disabled")
    assert tab.text("error") == ""
    assert "784 values" in tab.text("seen")


@needs_client
def test_the_page_is_written_with_hashes(tmp_path: Path) -> None:
    from lanner.cli import main

    target = tmp_path / "page"
    arguments = ["page", "wss://predict.example", "-o", str(target), "--pin", "sha256:" + "a" * 64]
    assert main([*arguments, "--model", "digits=" + "b" * 64]) == 0
    hashes = json.loads((target / "integrity.json").read_text())
    assert set(hashes) == {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} - {
        "integrity.json"
    }
    assert f'main.js" integrity="{hashes["main.js"]}"' in (target / "index.html").read_text()
    assert json.loads((target / "server.json").read_text())["address"] == "wss://predict.example"
