"""The waterfall of ``lanner run --html``: where a prediction's time goes, between both parties and the way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from lanner.cli.html import picture
from lanner.cli.output import Output, duration, size
from lanner.network import Network
from lanner.pictures import draw_waterfall, waterfall_size
from lanner.prediction import Prediction
from lanner.waterfall import Computed, Span, spans, total


def show_waterfall(predictions: Sequence[Prediction], computed: Computed, network: Network, output: Output) -> None:
    """Show what the server computed of each phase and step, and what of the client's time is left.

    Args:
        predictions: All that were made, of which the mean is shown.
        computed: What the server computed for all of them.
        network: The network between the parties.
        output: Where to.
    """
    steps = spans(predictions, computed, network)
    _show_phases(predictions, steps, network, output)
    shown = [step for step in steps if step.bytes > 0 or max(step.seconds, step.server) > _SHORT]
    _show_steps(shown, network, output)
    told = [_traffic(step) for step in shown]
    picture(
        output,
        waterfall_size(shown),
        _caption(len(predictions), network),
        lambda drawn: draw_waterfall(drawn, shown, told),
    )


def _show_phases(predictions: Sequence[Prediction], steps: Sequence[Span], network: Network, output: Output) -> None:
    rows = []
    for name in dict.fromkeys(step.phase for step in steps):
        of_phase = [step for step in steps if step.phase == name]
        phases = [prediction.phases[name] for prediction in predictions]
        whole = reduce(add, phases)
        count = len(phases)
        rows.append(
            (
                name,
                duration(sum(step.seconds for step in of_phase)),
                duration(sum(step.client for step in of_phase)),
                duration(sum(step.server for step in of_phase)),
                _way(sum(total(step.way) for step in of_phase), network),
                duration(sum(total(step.left) for step in of_phase)),
                size(whole.bytes_sent / count),
                size(whole.bytes_received / count),
                round(whole.rounds / count, 2),
            )
        )
    output.table(("phase", *_PARTS, "client sends", "server sends", "rounds"), rows, "Both parties")


def _show_steps(steps: Sequence[Span], network: Network, output: Output) -> None:
    rows = [
        (
            step.phase,
            step.name,
            step.protocol,
            duration(step.seconds),
            duration(step.client),
            duration(step.server),
            _way(total(step.way), network),
            duration(total(step.left)),
            size(step.bytes),
            round(step.rounds, 2),
        )
        for step in steps
    ]
    output.table(("phase", "layer", "protocol", *_PARTS, "bytes", "rounds"), rows, "Both parties, step by step")


def _way(seconds: float, network: Network) -> str | None:
    return None if network.profile is None else duration(seconds)


def _traffic(step: Span) -> str:
    """Bytes and rounds, of a step that has them."""
    rounds = round(step.rounds, 2)
    told = (size(step.bytes) if step.bytes else "", f"{rounds:g} round{'' if rounds == 1 else 's'}" if rounds else "")
    return ", ".join(filter(None, told))


def _caption(count: int, network: Network) -> str:
    """What is measured, and what follows from it."""
    whose = "The prediction" if count == 1 else f"The mean of {count} predictions"
    way = (
        "over loopback, time on the way is part of what is left"
        if network.profile is None
        else f"time on the way, from the bytes and rounds over {network.describe()}"
    )
    return (
        f"{whose} on the client's clock, without the set-up. Measured: each side's computing time, bytes and rounds. "
        f"Estimated: when each side computed; {way}. Left: waiting that neither explains. Where both compute at once, "
        "the picture shows the server. Both share this machine's cores."
    )


_PARTS = ("client's time", "client computes", "server computes", "on the way", "left")

#: Seconds of a step that is not shown if it sends nothing, too.
_SHORT = 1e-3
