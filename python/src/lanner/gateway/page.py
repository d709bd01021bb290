"""The page at ``/``, its files, and what its script asks for."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray

from lanner.gateway.bodies import read_body
from lanner.gateway.errors import Refused
from lanner.gateway.outputs import costs
from lanner.gateway.service import Service, body_limit, predict
from lanner.gateway.sessions import Answer, Progress, ServedModel
from lanner.inputs import own_shape
from lanner.manifest import Manifest
from lanner.tables import Notes
from lanner.uploads import read_upload

#: The page's files in the folder ``assets``, by path, with their content types.
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/ui/page.css": ("page.css", "text/css; charset=utf-8"),
    "/ui/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/ui/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "/ui/result.js": ("result.js", "text/javascript; charset=utf-8"),
    "/ui/live.js": ("live.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),
}

#: The most bytes of a picture.
MAX_PICTURE = 20_000_000


def add_page(app: FastAPI, service: Service) -> None:
    """Add the page and its routes."""
    for path, (name, kind) in FILES.items():
        content = files("lanner.gateway").joinpath("assets", name).read_bytes()
        app.add_api_route(path, partial(_file, content, kind), methods=["GET"], response_model=None)

    @app.get("/ui/models")
    async def models() -> JSONResponse:
        return JSONResponse({"models": [_described(model) for model in service.models.values()]})

    @app.post("/ui/predict")
    async def predicted(
        request: Request, model: str = "", ticket: str = "", csv_header: bool = False, text: bool = False
    ) -> JSONResponse:
        chosen = service.model(model)
        manifest = chosen.manifest
        with service.admission.admit():
            content = await read_body(request, max(body_limit(manifest), MAX_PICTURE))
            # Decoding a picture takes a while, so it is the model's thread that does it.
            notes = Notes()
            answer = await predict(
                request,
                chosen,
                lambda: _one(read_upload(content, manifest, csv_header=csv_header, notes=notes, as_text=text)),
                ticket,
            )
        return JSONResponse({**_result(answer, manifest), "notes": notes.sentences()})

    @app.get("/ui/progress")
    async def progress(model: str = "", ticket: str = "") -> JSONResponse:
        come = service.model(model).progress(ticket)
        return JSONResponse({"running": come is not None, **asdict(come or Progress([], []))})


async def _file(content: bytes, kind: str) -> Response:
    return Response(content, media_type=kind)


def _one(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    if len(samples) != 1:
        raise Refused(400, f"there are {len(samples)} inputs; the page accepts one at a time")
    return samples


def _described(model: ServedModel) -> dict[str, Any]:
    """What the page says of a model, and decides by."""
    manifest = model.manifest
    image = None
    if manifest.image is not None:
        height, width = manifest.image.size
        image = {"height": height, "width": width, "invert": manifest.image.invert}
    return {
        "name": model.name,
        "title": manifest.title,
        "note": manifest.note,
        "mode": manifest.mode,
        "output": manifest.output,
        "commitment": manifest.commitment,
        "shape": own_shape(manifest.input),
        "values": sum(math.prod(entry.shape) for entry in manifest.input.named) or math.prod(manifest.input.shape),
        "inputs": [entry.document() for entry in manifest.input.named],
        "image": image,
        "text": None if manifest.input.text is None else {"length": manifest.input.text.length},
        "classes": manifest.classes,
    }


def _result(answer: Answer, manifest: Manifest) -> dict[str, Any]:
    """One prediction as ``lanner predict --json`` prints it, and how it came about."""
    return {
        "prediction": answer.predictions[0].document(),
        "costs": {
            name: {
                "seconds": cost.seconds,
                "bytes_sent": cost.bytes_sent,
                "bytes_received": cost.bytes_received,
                "rounds": cost.rounds,
            }
            for name, cost in costs(answer, manifest).items()
        },
        "new_session": answer.opened,
        "seconds": answer.seconds,
        "longest_sent": {"length": answer.longest_sent.length, "beginning": answer.longest_sent.beginning.hex()},
    }
