"""A client that predicts for as long as it is told, in a process of its own, and says what it did.

    python predictor.py ADDRESS SAMPLES.npy OPTIONS.json

Options are those of `main`; the last line of standard output is ``{"event": "end"}``, or ``{"event": "failed"}`` with
the kind of the error and its sentence.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

import numpy as np

import lanner
from lanner.heap import live_bytes

DEFAULTS = {"each": 1000, "keep": 0, "one_by_one": True, "pause_every": 0, "paced": False}


def say(event: str, **told: object) -> None:
    """Print one line."""
    print(json.dumps({"event": event, **told}), flush=True)


def session(address: str, x: np.ndarray, first: int, options: dict[str, Any]) -> int:
    """One session: keep, then predict; the number of the next sample."""
    started = time.monotonic()
    with lanner.Client(address, **options["client"]) as client:
        say("connected", seconds=time.monotonic() - started, stock=client.stock)
        for _ in range(options["keep"]):
            client.keep(1)
            say("kept")
        last: int = min(first + options["each"], options["count"])
        rows = [index % len(x) for index in range(first, last)]
        one_by_one = (client.predict(x[row]) for row in rows)
        predictions = one_by_one if options["one_by_one"] else client.predict_each(x[rows])
        for index, prediction in enumerate(predictions, first):
            of_stock = prediction.phases["offline"].bytes == 0
            say("predicted", index=index, label=prediction.label, of_stock=of_stock)
            if options["pause_every"] and (index + 1) % options["pause_every"] == 0:
                pause()
        say("predicted_all", sessions=client.sessions)
    return last


def pause() -> None:
    """Wait until somebody says a line."""
    say("pause")
    sys.stdin.readline()


def main(arguments: list[str]) -> int:
    """Run sessions until `count` samples are predicted, from the first row on and again from it; one at least.

    Options, as one JSON object: ``client``, the keywords of `lanner.Client`; ``count`` of predictions; ``each``, how
    many a session makes; ``keep``, for how many material is kept in each session, before it predicts; ``one_by_one``,
    whether each prediction is awaited before the next is asked for; ``pause_every``, after how many predictions a line
    on standard input is awaited, and ``paced``, whether it is after each session.
    """
    address, samples, given = arguments
    x, options = np.load(samples), {**DEFAULTS, **json.loads(given)}
    done, more = 0, True
    try:
        while more:
            done = session(address, x, done, options)
            gc.collect()
            say("closed", done=done, live=live_bytes())
            if options["paced"]:
                pause()
            more = done < options["count"]
    except lanner.LannerError as error:
        say("failed", kind=type(error).__name__, what=str(error))
        return 1
    say("end")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
