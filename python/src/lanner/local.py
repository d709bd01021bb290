"""Both parties in this process, over a channel in memory: for tests and notebooks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lanner import _native
from lanner.errors import InputError, native_errors
from lanner.inputs import batch_of, check_range
from lanner.interrupts import interruptible
from lanner.model import Model, as_model
from lanner.named import Given
from lanner.prediction import Prediction


def run(model: Model | str | Path, x: Given) -> Prediction:
    """Run the whole protocol on one sample.

    Whoever runs it has model and input, so `Prediction.saturated` tells where values saturated, and how many, where the
    model does not reveal one bit of it anyway.

    Args:
        model: A compiled model, or the path of its file.
        x: Shape `model.manifest.input.shape`, or (1, *shape), or what `Client.predict` takes.

    Raises:
        InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
    """
    model = as_model(model)
    batch = batch_of(x, model.manifest.input)
    if len(batch) != 1:
        raise InputError(f"there are {len(batch)} samples", where="input", fix="call run for each sample")
    check_range(batch, model.manifest.input)
    with native_errors(model.name):
        text = interruptible(lambda: _native.run_in_memory(model.native, batch))
    prediction = Prediction.from_document(json.loads(text)[0])
    if prediction.saturated is None:
        prediction = replace(prediction, saturated=model.predict_saturating(batch)[2][0])
    return model.manifest.told(prediction, batch[0])
