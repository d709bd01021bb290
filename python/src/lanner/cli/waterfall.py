"""The waterfall of ``lanner run --html``: where a prediction's time goes, between both parties and the way."""

from __future__ import annotations

from collections.abc import Sequence

from lanner.cli.html import picture
from lanner.cli.output import Output, duration, size
from lanner.network import Network
from lanner.pictures import draw_waterfall, waterfall_size
from lanner.prediction import Phase, Prediction
from lanner.waterfall import Computed, Span, spans


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
    told = [size(step.bytes) + _rounds(step.rounds) for step in shown]
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
        total = sum(phases, Phase(0.0, 0, 0, 0))
        count = len(phases)
        rows.append(
            (
                name,
                duration(sum(step.seconds for step in of_phase)),
                duration(sum(step.server for step in of_phase)),
                _link(sum(step.link for step in of_phase), network),
                duration(sum(step.left for step in of_phase)),
                size(total.bytes_sent / count),
                size(total.bytes_received / count),
                total.rounds / count,
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
            duration(step.server),
            _link(step.link, network),
            duration(step.left),
            size(step.bytes),
            step.rounds,
        )
        for step in steps
    ]
    output.table(("phase", "layer", "protocol", *_PARTS, "bytes", "rounds"), rows, "Both parties, step by step")


def _link(seconds: float, network: Network) -> str | None:
    return None if network.profile is None else duration(seconds)


def _rounds(rounds: float) -> str:
    """Rounds behind bytes: nothing where there are none, as of what a message before it brought along."""
    return f", {rounds:.3g} round{'' if rounds == 1 else 's'}" if rounds else ""


def _caption(count: int, network: Network) -> str:
    """What is measured, and what follows from it."""
    whose = "The prediction" if count == 1 else f"The mean of {count} predictions"
    link = (
        "Over loopback nothing is told apart as being on the way."
        if network.profile is None
        else f"On the way is reckoned, not measured: bytes and rounds over {network.describe()}, at most what the "
        "server leaves."
    )
    return (
        f"{whose} on the client's clock, step behind step, each phase from 0; the set-up, once a session, is not "
        "drawn. Measured: how long the client was at each step, its bytes and rounds, and how long the server computed "
        "for that step, by the server's clock and without waiting. Where within the step the server computed is not "
        "measured: its part is drawn at the end, cut off where it is longer than the step, as work ahead is. The "
        f"client may compute at the same time, as where both make keys. {link} What is left is the client computing, "
        "and waiting that nothing of this explains. Both parties share this machine's cores."
    )


_PARTS = ("client's time", "server computes", "on the way", "left")

#: Seconds of a step that is not shown if it sends nothing, too.
_SHORT = 1e-3
