"""The gateway's application: the routes of the Open Inference Protocol v2, those of v1, and its metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from lanner.errors import LannerError
from lanner.gateway.bodies import read_body
from lanner.gateway.errors import Refused
from lanner.gateway.front import Front, answer_errors
from lanner.gateway.guard import Guard
from lanner.gateway.outputs import check_outputs, outputs_of, response
from lanner.gateway.page import add_page
from lanner.gateway.requests import InferenceRequest
from lanner.gateway.service import VERSION, Service, body_limit, predict_all, samples_of, samples_of_texts
from lanner.gateway.sessions import ServedModel
from lanner.gateway.tensors import TEXT
from lanner.gateway.v1 import add_v1
from lanner.manifest import Manifest
from lanner.named import NamedInput, tables_of
from lanner.telemetry.exposition import exposition
from lanner.telemetry.records import Listener

#: Of the Open Inference Protocol, what is beyond its core.
EXTENSIONS = ("classification", "binary_tensor_data")


def make_app(service: Service, guard: Guard, registry: CollectorRegistry, listeners: Sequence[Listener]) -> Front:
    """The application that a web server runs.

    Args:
        service: The models.
        guard: Who is let in.
        registry: What ``/metrics`` tells.
        listeners: Told of every request when it was answered.
    """
    # No page of FastAPI's own: they load scripts from other hosts.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    answer_errors(app)
    _add_server(app, service)
    for path in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
        _add_model(app, service, path)
    add_v1(app, service)
    _add_metrics(app, registry)
    add_page(app, service)
    return Front(app, guard, listeners)


def _add_server(app: FastAPI, service: Service) -> None:
    @app.get("/v2")
    async def metadata() -> JSONResponse:
        return JSONResponse({"name": "lanner", "version": service.version, "extensions": EXTENSIONS})

    @app.get("/v2/health/live")
    async def live() -> JSONResponse:
        return JSONResponse({"live": True})

    @app.get("/v2/health/ready")
    async def ready() -> JSONResponse:
        for model in service.models.values():
            await _check_ready(model)
        return JSONResponse({"ready": True})


def _add_metrics(app: FastAPI, registry: CollectorRegistry) -> None:
    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        content, content_type = exposition(registry, request.headers.get("accept"))
        return Response(content, headers={"Content-Type": content_type})


def _add_model(app: FastAPI, service: Service, path: str) -> None:
    @app.get(path)
    async def metadata(name: str, version: str = VERSION) -> JSONResponse:
        return JSONResponse(_metadata(service.model(name, version)))

    @app.get(f"{path}/ready")
    async def ready(name: str, version: str = VERSION) -> JSONResponse:
        await _check_ready(service.model(name, version))
        return JSONResponse({"name": name, "ready": True})

    @app.post(f"{path}/infer")
    async def infer(request: Request, name: str, version: str = VERSION) -> Response:
        model = service.model(name, version)
        with service.admission.admit():
            body = await read_body(request, body_limit(model.manifest))
            length = request.headers.get("inference-header-content-length")
            # Many numbers as text take a while, in which others must be answered.
            asked, samples = await asyncio.to_thread(_read, body, length, model.manifest)
            answer = await predict_all(request, model, samples)
        content, json_bytes = response(asked, name, version, model.manifest, answer)
        if json_bytes is None:
            return Response(content, media_type="application/json")
        header = {"Inference-Header-Content-Length": str(json_bytes)}
        return Response(content, media_type="application/octet-stream", headers=header)


async def _check_ready(model: ServedModel) -> None:
    try:
        await asyncio.to_thread(model.check_ready)
    except LannerError as error:
        raise Refused(503, f"the server behind does not answer: {error}") from None


def _read(body: bytes, header_length: str | None, manifest: Manifest) -> tuple[InferenceRequest, NDArray[np.float32]]:
    """A request and its samples, where every part of it fits the model."""
    reads = manifest.input.text is not None
    asked = InferenceRequest.parse(body, header_length, tables_of(manifest.input.named), reads_texts=reads)
    check_outputs(asked.outputs or (), manifest)
    if asked.texts is not None:
        return asked, samples_of_texts(asked.texts, manifest)
    return asked, samples_of(asked.arrays, manifest)


def _metadata(model: ServedModel) -> dict[str, Any]:
    manifest = model.manifest
    named = manifest.input.named or (NamedInput(manifest.input.name, "FP32", manifest.input.shape),)
    inputs = [{"name": each.name, "datatype": each.datatype, "shape": [-1, *each.shape]} for each in named]
    if manifest.input.text is not None:
        # The arrays that it becomes are taken, too.
        inputs = [{"name": TEXT, "datatype": "BYTES", "shape": [-1]}]
    return {
        "name": model.name,
        "versions": [VERSION],
        "platform": f"lanner_{manifest.mode}",
        "inputs": inputs,
        "outputs": [output.document() for output in outputs_of(manifest)],
    }
