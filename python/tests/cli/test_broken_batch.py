"""A batch that breaks: people see what was predicted, then the error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from lanner.cli.output import Output
from lanner.cli.predict import predict_samples
from lanner.client import Client
from lanner.errors import TransportError
from lanner.inputs import Sample
from lanner.prediction import Layer, Phase, Prediction


class Breaking:
    """A client whose server is gone after some predictions."""

    def __init__(self, left: int) -> None:
        self.left = left

    def predict_each(self, values: NDArray[np.float32]) -> Iterator[Prediction]:
        """Predictions, while there are any left."""
        for _ in values:
            if self.left == 0:
                raise TransportError("the peer closed the connection")
            self.left -= 1
            phases = {name: Phase(0.1, 10, 20, 1) for name in ("setup", "offline", "online")}
            layers = [Layer("fc1", "gazelle.fc", "online", 0.1, 0.05, 30, 10, 1)]
            yield Prediction(4, None, None, phases, layers, "gazelle", "digits")


@pytest.mark.parametrize("finished", [0, 2])
def test_what_is_finished_is_shown(finished: int, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    samples = [Sample("x.npy", index, np.zeros(3, np.float32)) for index in range(3)]
    with pytest.raises(TransportError) as caught:
        predict_samples(cast(Client, Breaking(finished)), samples, output)
    output.fail(caught.value)
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines() if "x.npy" in line] == [
        ["x.npy", *([str(index)] if finished > 1 else []), "4"] for index in range(finished)
    ]
    *notes, error = printed.err.splitlines()
    assert error == "error: the peer closed the connection"
    # How far it came, of how many.
    assert [f"{finished} of 3" in note for note in notes] == [True] * (finished > 0)
    assert len(output.predictions) == finished
