"""The routes of KServe's protocol v1, which TensorFlow Serving's clients speak: instances in, predictions out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from numpy.typing import NDArray

from lanner.files import why
from lanner.gateway.bodies import read_body
from lanner.gateway.errors import Refused
from lanner.gateway.outputs import tensors
from lanner.gateway.service import Service, body_limit, predict_all, samples_of, samples_of_texts
from lanner.gateway.sessions import Answer
from lanner.gateway.tensors import TEXT, numbers_of
from lanner.inputs import table_of, to_float32, without_repeats
from lanner.manifest import Manifest
from lanner.named import tables_of
from lanner.tables import read_objects
from lanner.texts import texts_of


def add_v1(app: FastAPI, service: Service) -> None:
    """Add the routes to an application."""

    @app.get("/v1/models")
    async def models() -> JSONResponse:
        return JSONResponse({"models": list(service.models)})

    @app.get("/v1/models/{name}")
    async def model(name: str) -> JSONResponse:
        served = service.model(name)
        await asyncio.to_thread(served.check_ready)
        return JSONResponse({"name": served.name, "ready": True})

    @app.post("/v1/models/{name}:predict")
    async def predict(request: Request, name: str) -> JSONResponse:
        served = service.model(name)
        with service.admission.admit():
            body = await read_body(request, body_limit(served.manifest))
            # Many numbers as text take a while, in which others must be answered.
            samples, by_column = await asyncio.to_thread(_read, body, served.manifest)
            answer = await predict_all(request, served, samples)
        if by_column:
            return JSONResponse({"outputs": _columns(served.manifest, answer)})
        return JSONResponse({"predictions": _rows(served.manifest, answer)})


def _read(body: bytes, manifest: Manifest) -> tuple[NDArray[np.float32], bool]:
    """The samples of a request, and whether they came as a column for each input.

    Raises:
        Refused: If the body is no such request, or does not fit the model.
        InputError: If a value is not finite or does not fit.
    """
    try:
        document = json.loads(body, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON ({why(error)}); see KServe's protocol v1") from None
    if not isinstance(document, dict) or ("instances" in document) == ("inputs" in document):
        raise Refused(400, "the request must have `instances`, a list of samples, or `inputs`, a list for each input")
    by_column = "inputs" in document
    given = document["inputs" if by_column else "instances"]
    if not by_column and (not isinstance(given, list) or not given):
        raise Refused(400, "`instances` must be a list of samples")
    if manifest.input.text is not None and (texts := _texts(given)) is not None:
        return samples_of_texts(texts, manifest), by_column
    named = manifest.input.named
    table, tables = table_of(manifest.input), tables_of(named)
    rows = None if table is None else read_objects(given, table.columns, table.name, "the request")
    if table is not None and rows is not None:
        return samples_of({table.name: to_float32(rows, "the request", missing=True)}, manifest), by_column
    names = [each.name for each in named] or [manifest.input.name]
    if by_column:
        columns = given if isinstance(given, dict) else {names[0]: given}
        arrays = {str(name): _array(values, str(name), tables) for name, values in columns.items()}
    else:
        arrays = _stacked(given, names, tables)
    return samples_of(arrays, manifest), by_column


def _texts(given: Any) -> list[str] | None:  # noqa: ANN401 - parsed here
    """Texts, each by itself or as an object's only member `text`; also under that name. None of anything else."""
    listed = given.get(TEXT) if isinstance(given, dict) and list(given) == [TEXT] else given
    if not isinstance(listed, list):
        return texts_of(listed)
    return texts_of([each[TEXT] if isinstance(each, dict) and list(each) == [TEXT] else each for each in listed])


def _stacked(instances: Sequence[Any], names: Sequence[str], tables: Collection[str]) -> dict[str, NDArray[np.float32]]:
    """Samples, each a list, or an object of the inputs by name, as an array for each input."""
    if not all(isinstance(each, dict) for each in instances):
        if len(names) > 1:
            raise Refused(400, f"each of the instances must be an object of {', '.join(names)}")
        return {names[0]: _array(instances, names[0], tables)}
    keys = list(instances[0])
    if any(set(each) != set(keys) for each in instances):
        raise Refused(400, "the instances must have the same inputs")
    return {str(name): _array([each[name] for each in instances], str(name), tables) for name in keys}


def _array(values: Any, name: str, tables: Collection[str]) -> NDArray[np.float32]:  # noqa: ANN401 - parsed here
    try:
        array = numbers_of(values, missing=name in tables)
    except (ValueError, OverflowError, RecursionError):
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise Refused(400, f"the data of input {name!r} must be numbers in lists of equal length")
    return to_float32(array, f"input {name!r}", missing=name in tables)


def _columns(manifest: Manifest, answer: Answer) -> object:
    """The outputs, each a list over the samples; of one output that list alone."""
    found = {tensor.name: tensor.values.tolist() for tensor in tensors(manifest, answer)}
    return next(iter(found.values())) if len(found) == 1 else found


def _rows(manifest: Manifest, answer: Answer) -> list[object]:
    """For each sample an object of the outputs; of one output its value alone."""
    found: Mapping[str, list[Any]] = {tensor.name: tensor.values.tolist() for tensor in tensors(manifest, answer)}
    if len(found) == 1:
        return list(next(iter(found.values())))
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
