"""The files of the page for browsers: what a server offers, and what another host of it needs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

#: The page's files: path in the page's address, place in this package, and content type.
_PAGE = {
    "index.html": ("web/page/index.html", "text/html; charset=utf-8"),
    "main.js": ("web/page/main.js", "text/javascript; charset=utf-8"),
    "page.css": ("gateway/assets/page.css", "text/css; charset=utf-8"),
    "drawing.js": ("gateway/assets/drawing.js", "text/javascript; charset=utf-8"),
    "live.js": ("gateway/assets/live.js", "text/javascript; charset=utf-8"),
    "result.js": ("gateway/assets/result.js", "text/javascript; charset=utf-8"),
    "favicon.svg": ("gateway/assets/icon.svg", "image/svg+xml"),
}

#: The client's scripts, in ``client/``.
_SCRIPTS = ("errors.js", "inputs.js", "lanner.js", "platform.js", "ring.js", "socket.js", "wasi.js", "worker.js")

#: What the page is told of its server.
SERVER = "server.json"

_MODULE = "web/client/lanner.wasm"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page.

    Attributes:
        kind: Its content type.
        content: Its bytes.
    """

    kind: str
    content: bytes

    @property
    def integrity(self) -> str:
        """Its hash, as a page's ``integrity`` has it."""
        return "sha384-" + base64.b64encode(hashlib.sha384(self.content).digest()).decode()


def is_built() -> bool:
    """Whether this installation has the browser client, which `make web` builds."""
    return bool(_at(_MODULE).is_file())


def page_files(server: Mapping[str, Any]) -> dict[str, PageFile]:
    """The files of a page for a server, by path. `server` is what the page is told of it.

    Call it only where `is_built`.
    """
    found = {path: PageFile(kind, _at(place).read_bytes()) for path, (place, kind) in _PAGE.items()}
    for name in _SCRIPTS:
        found[f"client/{name}"] = PageFile("text/javascript; charset=utf-8", _at(f"web/client/{name}").read_bytes())
    found["client/lanner.wasm"] = PageFile("application/wasm", _at(_MODULE).read_bytes())
    found[SERVER] = PageFile("application/json", json.dumps(server, indent=2).encode() + b"\n")
    # The first files that a browser loads say what the others must be, as far as it checks that.
    page = found["index.html"].content.decode()
    for name in ("page.css", "main.js"):
        page = page.replace(f'"{name}"', f'"{name}" integrity="{found[name].integrity}"')
    found["index.html"] = PageFile(found["index.html"].kind, page.encode())
    return found


def server_document(
    pin: str | None, models: Mapping[str, str], address: str | None = None, certificates: bool | None = None
) -> dict[str, Any]:
    """What a page is told of its server: the fingerprint, models with their commitments, and the address.

    Without an address it is where the page came from. `certificates` is whether clients must show one, if known.
    """
    listed = [{"name": name, "commitment": commitment} for name, commitment in models.items()]
    return {"address": address, "pin": pin, "models": listed, "certificates": certificates}


def _at(place: str) -> Any:  # noqa: ANN401 - a place in the package, wherever that is
    return files("lanner").joinpath(*place.split("/"))
