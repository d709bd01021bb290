"""The client in a browser: headless Chromium and a server on this machine."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.chromium import Tab, browsing
from lanner.benchmarks.cases import Case
from lanner.benchmarks.measure import PATIENCE, served
from lanner.errors import LannerError
from lanner.options import Protocols

#: Predictions that are timed, behind a first one that warms up.
REPEATS = 5

#: Connects, and predicts so many times; the page keeps what it finds.
_SCRIPT = """
window.found = null;
(async () => {{
  const {{ Client }} = await import("/client/lanner.js");
  const sample = new Float32Array({sample});
  const begun = performance.now();
  const client = await Client.connect(location.origin, {{ pin: {pin}, timeout: {patience}, maxMemory: {memory} }});
  const found = {{ setup: performance.now() - begun, predictions: [], memory: 0 }};
  for (let i = 0; i < {count}; i++) {{
    const asked = performance.now();
    const {{ integers, label, layers }} = await client.predict(sample);
    found.predictions.push({{ milliseconds: performance.now() - asked, integers, label, layers }});
    found.memory = client.memory;
  }}
  await client.close();
  window.found = found;
}})().catch((error) => {{ window.found = {{ error: String(error) }}; }});
true
"""


@dataclass(frozen=True, slots=True)
class InBrowser:
    """What predictions in a browser take.

    Attributes:
        name: The benchmark.
        mode: The model's mode.
        setup_seconds: From opening the connection to the first request.
        seconds: A prediction with its preparation; the median.
        bytes: Of a prediction, in both directions.
        memory: Bytes of the module's memory behind the last one.
        n: Predictions that were timed.
        browser: Its name and version.
    """

    name: str
    mode: str
    setup_seconds: float
    seconds: float
    bytes: int
    memory: int
    n: int
    browser: str

    def document(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return asdict(self)


def in_browser(case: Case, protocols: Protocols, repeat: int | None) -> InBrowser:
    """Measure a benchmark; every result is checked outside the clock.

    Raises:
        LannerError: If a result is not the fixed-point reference's, or the protocol fails.
    """
    model, sample = case.build(protocols)
    reference = model.predict_integers(sample)[0][0]
    count = 1 + (repeat or REPEATS)
    with served(case, model, web=True) as server, browsing() as tab:
        tab.open(f"http://localhost:{server.web_address.rsplit(':', 1)[1]}/")
        script = _SCRIPT.format(
            sample=json.dumps(np.ravel(sample).tolist()),
            pin=json.dumps(server.trusted()["pin"]),
            patience=PATIENCE,
            memory=json.dumps(case.max_memory),
            count=count,
        )
        tab.value(script)
        found = _found(tab, count)
        browser = tab.value("navigator.userAgent").rsplit(" ", 2)[1]
    for prediction in found["predictions"]:
        scores = prediction["integers"]
        told = scores if scores is not None else prediction["label"]
        true = np.ravel(reference).tolist() if scores is not None else int(np.argmax(reference))
        if told != true:
            raise LannerError("the result in the browser is not the fixed-point reference's", where=case.name)
    timed = found["predictions"][1:]
    return InBrowser(
        case.name,
        protocols.mode,
        found["setup"] / 1000,
        statistics.median(prediction["milliseconds"] for prediction in timed) / 1000,
        int(statistics.median(sum(layer["bytes"] for layer in prediction["layers"]) for prediction in timed)),
        found["memory"],
        len(timed),
        browser,
    )


def _found(tab: Tab, count: int) -> dict[str, Any]:
    """What the page has found, once it has."""
    deadline = time.monotonic() + count * PATIENCE
    while (found := tab.value("window.found")) is None:
        if time.monotonic() > deadline:
            raise LannerError("the page does not come to an end")
        time.sleep(0.2)
    if "error" in found:
        raise LannerError(f"the page failed: {found['error']}")
    result: dict[str, Any] = found
    return result
