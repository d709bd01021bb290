"""Who traces networks while bits are searched for: the model does not depend on it, and what goes wrong is told."""

from __future__ import annotations

from collections.abc import Callable

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
    """A tracer that once does something else than it is to.

    Attributes:
        call: Which call that is, from 0; those before and after it are answered.
        asked: How often it was asked.
    """

    def __init__(self, call: int, otherwise: Callable[[list[Trace]], list[Trace]]) -> None:
        self.call, self._otherwise = call, otherwise
        self.asked = 0

    def over(self, samples: NDArray[np.float32]) -> Traces:
        def traces(manifest: str, weights: bytes, numbers: list[int]) -> list[Trace]:
            self.asked += 1
            made = _native.traces(manifest, weights, samples[numbers], numbers)
            return self._otherwise(made) if self.asked == self.call + 1 else made

        return traces


def raising(error: Exception) -> Callable[[list[Trace]], list[Trace]]:
    def otherwise(_: list[Trace]) -> list[Trace]:
        raise error

    return otherwise


@pytest.mark.parametrize("mode", ["cheetah", "gazelle", "tabula"])
def test_the_model_is_the_same_whoever_traces(mode: str) -> None:
    tracer = InParts()
    there = lanner.compile(tiny_classifier(), X, mode=mode, name="tiny", tracer=tracer)
    here = lanner.compile(tiny_classifier(), X, mode=mode, name="tiny")
    assert there.report() == here.report()
    assert np.array_equal(there.predict_integers(X)[0], here.predict_integers(X)[0])
    assert tracer.asked > 1


@pytest.mark.parametrize("mode", ["auto", "tabula"])
def test_what_goes_wrong_once_ends_the_search(mode: str) -> None:
    tracer = InParts()
    lanner.compile(tiny_classifier(), X, mode=mode, tracer=tracer)
    for call in range(tracer.asked):
        for error in (TransportError("the cluster is gone"), KeyError("what")):
            failing = Failing(call, raising(error))
            with pytest.raises(type(error)) as caught:
                lanner.compile(tiny_classifier(), X, mode=mode, tracer=failing)
            assert caught.value is error
            assert failing.asked == call + 1
        wrong: list[tuple[Callable[[list[Trace]], list[Trace]], str]] = [
            (lambda _: [], "another network or of other samples"),
            (lambda made: made[:-1], "another network or of other samples"),
            (lambda made: [made[0][:-16], *made[1:]], "another network or of other samples"),
            (lambda made: [made[0][:-1], *made[1:]], "damaged"),
            (lambda made: [b"\xff" * 8 + made[0][8:], *made[1:]], "damaged"),
            (lambda made: [made[0][:8] + b"\0" * 15 + b"\x7f" + made[0][24:], *made[1:]], "another network"),
        ]
        for otherwise, what in wrong:
            with pytest.raises(lanner.TransportError, match=what):
                lanner.compile(tiny_classifier(), X, mode=mode, tracer=Failing(call, otherwise))


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
