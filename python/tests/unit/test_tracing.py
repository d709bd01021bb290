"""Who traces networks while bits are searched for: the model does not depend on it, and what goes wrong is told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner import _native
from lanner.errors import TransportError
from lanner.tracing import Trace, Traces

X = tiny_samples()


class InParts:
    """A tracer that asks for the samples one by one, last ones first."""

    def __init__(self) -> None:
        self.asked = 0

    def over(self, samples: NDArray[np.float32]) -> Traces:
        def traces(manifest: str, weights: bytes, numbers: list[int]) -> list[Trace]:
            self.asked += 1
            made = [_native.traces(manifest, weights, samples[[n]], [n]) for n in reversed(numbers)]
            return [trace for (trace,) in reversed(made)]

        return traces


class Failing:
    """A tracer whose answer is an error, or no trace at all."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def over(self, _: NDArray[np.float32]) -> Traces:
        def traces(*_: object) -> list[Trace]:
            if self.error is not None:
                raise self.error
            return []

        return traces


@pytest.mark.parametrize("mode", ["cheetah", "gazelle", "tabula"])
def test_the_model_is_the_same_whoever_traces(mode: str) -> None:
    tracer = InParts()
    there = lanner.compile(tiny_classifier(), X, mode=mode, name="tiny", tracer=tracer)
    here = lanner.compile(tiny_classifier(), X, mode=mode, name="tiny")
    assert there.report() == here.report()
    assert np.array_equal(there.predict_integers(X)[0], here.predict_integers(X)[0])
    assert tracer.asked > 1


def test_what_goes_wrong_is_told() -> None:
    for error in (TransportError("the cluster is gone"), KeyError("what")):
        with pytest.raises(type(error)) as caught:
            lanner.compile(tiny_classifier(), X, tracer=Failing(error))
        assert caught.value is error
    with pytest.raises(lanner.ModelError, match="another network or of other samples"):
        lanner.compile(tiny_classifier(), X, tracer=Failing(None))


def test_a_sample_that_does_not_fit_is_named_by_its_number() -> None:
    asked: list[tuple[str, bytes]] = []

    class Listening(InParts):
        def over(self, samples: NDArray[np.float32]) -> Traces:
            traces = super().over(samples)

            def listened(manifest: str, weights: bytes, numbers: list[int]) -> list[Trace]:
                asked.append((manifest, weights))
                return traces(manifest, weights, numbers)

            return listened

    lanner.compile(tiny_classifier(), X, tracer=Listening())
    beyond = np.full_like(X[:1], 1e9)
    with pytest.raises(_native.NativeError, match="sample 17: "):
        _native.traces(*asked[0], beyond, [17])
    with pytest.raises(_native.NativeError, match="as many samples as numbers"):
        _native.traces(*asked[0], X[:2], [0])
    with pytest.raises(_native.NativeError):
        _native.traces("{}", b"", X[:1], [0])
