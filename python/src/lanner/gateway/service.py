"""The models that a gateway offers, and what a request to one may hold."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from lanner.gateway.admission import Admission
from lanner.gateway.errors import Refused
from lanner.gateway.outputs import costs
from lanner.gateway.sessions import Answer, ServedModel
from lanner.inputs import as_batch, batch_of, check_range
from lanner.manifest import Manifest
from lanner.telemetry.records import Work
from lanner.texts import MOST_WRITTEN

#: The one version that each model has here.
VERSION = "1"

#: The most samples of a request, unless one request to the server holds more.
MAX_SAMPLES = 1024

#: How many of them are predicted before other callers have their turn, unless one request to the server holds more.
TURN = 16

#: The most bytes of a number as text, with what separates it from the next; and of all else in a request.
_NUMBER_BYTES, _OTHER_BYTES = 32, 1 << 16

#: The most bytes of a request with more samples than one turn has.
_MANY_BYTES = 2 << 20

#: The most bytes of any request: the model's input is what its server says.
_MOST_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """What the routes work with.

    Attributes:
        models: The models of the server behind, by name.
        admission: How many requests there may be at a time.
        version: The version of this package.
    """

    models: Mapping[str, ServedModel]
    admission: Admission
    version: str

    def model(self, name: str, version: str = VERSION) -> ServedModel:
        """A model by its name.

        Raises:
            Refused: If there is none.
        """
        if name not in self.models:
            raise Refused(404, f"there is no such model here; name one of {', '.join(self.models)}")
        if version != VERSION:
            raise Refused(404, f"there is no such version of model {name}; there is {VERSION}")
        return self.models[name]


async def predict(
    request: Request, model: ServedModel, read: Callable[[], NDArray[np.float32]], ticket: str = ""
) -> Answer:
    """Predict in turn, and leave to logs, metrics and traces which model it was and what it took."""
    request.state.model, request.state.mode = model.name, model.manifest.mode
    answer = await asyncio.wrap_future(model.predict(read, ticket))
    request.state.work = _work(answer, model.manifest)
    return answer


async def predict_all(request: Request, model: ServedModel, samples: NDArray[np.float32]) -> Answer:
    """Predict samples, some at a time, so that other callers have their turns in between."""
    turn = max(TURN, model.manifest.batch)
    parts = [
        await predict(request, model, partial(_part, samples, start, turn)) for start in range(0, len(samples), turn)
    ]
    answer = Answer(
        [replace(each, index=index) for index, each in enumerate(each for part in parts for each in part.predictions)],
        any(part.opened for part in parts),
        sum(part.seconds for part in parts),
        max((part.longest_sent for part in parts), key=lambda sent: sent.length),
    )
    request.state.work = _work(answer, model.manifest)
    return answer


def _part(samples: NDArray[np.float32], start: int, count: int) -> NDArray[np.float32]:
    return samples[start : start + count]


def samples_of(arrays: Mapping[str, NDArray[np.float32]], manifest: Manifest) -> NDArray[np.float32]:
    """The inputs of a request as samples, where they fit the model.

    Raises:
        Refused: If they are others than the model's, or too many samples.
        InputError: If they do not fit.
    """
    entry = manifest.input
    names = [each.name for each in entry.named] or [entry.name]
    unknown = next((name for name in arrays if name not in names), None)
    if unknown is not None:
        raise Refused(400, f"the model has no input {unknown!r} but {', '.join(map(repr, names))}")
    if not arrays:
        raise Refused(400, f"there are no inputs; give {', '.join(map(repr, names))}")
    where = f"input {entry.name!r}"
    samples = check_count(as_batch(dict(arrays) if entry.named else arrays[entry.name], entry, where), manifest)
    check_range(samples, entry, where)
    return samples


def samples_of_texts(texts: Sequence[str], manifest: Manifest) -> NDArray[np.float32]:
    """Texts as samples, where they fit the model.

    Raises:
        Refused: If there are too many.
        InputError: If one is too long.
    """
    if not 1 <= len(texts) <= sample_limit(manifest):
        raise Refused(400, f"there are {len(texts)} texts; give 1 to {sample_limit(manifest)}")
    return check_count(batch_of(list(texts), manifest.input), manifest)


def _work(answer: Answer, manifest: Manifest) -> Work:
    """What an answer took; nothing of the results."""
    phases = costs(answer, manifest)
    if not answer.opened:
        del phases["setup"]
    layers = tuple(layer for prediction in answer.predictions for layer in prediction.layers)
    return Work(len(answer.predictions), phases, layers)


def body_limit(manifest: Manifest) -> int:
    """The most bytes of a request to a model: of its samples, each number written out."""
    sample = math.prod(manifest.input.shape) * _NUMBER_BYTES
    if manifest.input.text is not None:
        sample = max(sample, MOST_WRITTEN)
    few, many = (count * sample + _OTHER_BYTES for count in (max(TURN, manifest.batch), sample_limit(manifest)))
    return min(max(few, min(many, _MANY_BYTES)), _MOST_BYTES)


def sample_limit(manifest: Manifest) -> int:
    """The most samples of a request to a model."""
    return max(MAX_SAMPLES, manifest.batch)


def check_count(samples: NDArray[np.float32], manifest: Manifest) -> NDArray[np.float32]:
    """The samples, which are not too many.

    Raises:
        Refused: If they are.
    """
    if len(samples) > sample_limit(manifest):
        most = sample_limit(manifest)
        raise Refused(400, f"there are {len(samples)} samples; send at most {most} in a request")
    return samples
