"""``lanner page``: the page for browsers as files, for another host."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from lanner.cli.output import Output
from lanner.errors import MisuseError
from lanner.files import why
from lanner.web.files import is_built, page_files, server_document

NAME = "page"
HELP = "write the browser client's page as static files for another host"

#: The hashes of all files, beside them.
INTEGRITY = "integrity.json"

#: What a host of the page must send with its files, so that a browser lets the client's threads share memory.
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "server",
        metavar="wss://HOST:PORT",
        help="the server, as browsers reach it: `wss://` with a public certificate, or `ws://` on the same machine",
    )
    parser.add_argument("-o", dest="target", type=Path, required=True, metavar="DIR", help="the folder to create")
    parser.add_argument(
        "--pin", required=True, metavar="sha256:...", help="the server's fingerprint, which serve printed"
    )
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        dest="models",
        metavar="NAME=COMMITMENT",
        help="a model with its commitment, which `lanner inspect` prints; may be repeated",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Write the files, their hashes, and say what their host must do."""
    require_built()
    document = server_document(_pin(options.pin), _models(options.models), _address(options.server))
    files = page_files(document)
    target: Path = options.target
    try:
        target.mkdir(parents=True)
        for path, file in files.items():
            place = target / path
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(file.content)
        hashes = {path: file.integrity for path, file in sorted(files.items())}
        (target / INTEGRITY).write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")
    except FileExistsError:
        raise MisuseError("is there already", where=str(target), fix="name another folder, or remove it") from None
    except OSError as error:
        raise MisuseError(f"cannot be written ({why(error)})", where=str(target)) from None
    output.document({"page": str(target), "files": hashes, "headers": HEADERS})
    output.say(f"written to {target}; {INTEGRITY} has the hashes of all files")
    output.say("serve it over https, or at localhost, with these headers: " + _told(HEADERS))
    output.say("start the server with --web-origin and the page's origin, such as https://page.example")
    return 0


def require_built() -> None:
    """Check that this installation has the browser client."""
    if not is_built():
        raise MisuseError(
            "this installation was built without the browser client",
            fix="build it with `make web` in a checkout, or install a wheel that has it",
        )


def _told(headers: dict[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in headers.items())


def _pin(text: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", text):
        raise MisuseError(
            f"{text!r} is not a fingerprint", where="--pin", fix="copy `sha256:` and 64 digits as `serve` printed"
        )
    return text


def _models(texts: list[str]) -> dict[str, str]:
    models = {}
    for text in texts:
        name, equals, commitment = text.rpartition("=")
        if not equals or not name or not re.fullmatch(r"[0-9a-fA-F]{64}", commitment):
            raise MisuseError(
                f"{text!r} is no model",
                where="--model",
                fix="write NAME=COMMITMENT, with the 64 digits that `lanner inspect` prints",
            )
        models[name] = commitment
    return models


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("ws", "wss") or not parts.hostname or parts.path not in ("", "/"):
        raise MisuseError(
            f"{text!r} is not the address of a WebSocket", fix="write wss://HOST:PORT, or ws://localhost:PORT"
        )
    return f"{parts.scheme}://{parts.netloc}"
