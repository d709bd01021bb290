"""The waterfall of both parties: each step's time is split without a rest, and none of the server's is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.cli.counters import await_counters
from lanner.cli.process import ServerProcess
from lanner.network import LOOPBACK, Network
from lanner.pictures import draw_waterfall
from lanner.prediction import Layer, Phase, Prediction
from lanner.waterfall import spans, total

FAR = Network("far", (8e6, 0.01))


def prediction(*layers: Layer) -> Prediction:
    phases = {phase: Phase(0.0, 0, 0, 0) for phase in ("setup", "offline", "online")}
    return Prediction(0, None, None, phases, list(layers), "cheetah", "tiny")


def layer(
    name: str, phase: str, seconds: float, transferred: int = 0, rounds: int = 0, computing: float = 0.0
) -> Layer:
    return Layer(name, "p", phase, seconds, computing, transferred, transferred // 2, rounds)


def test_steps_follow_each_other_in_each_phase_from_zero() -> None:
    made = prediction(layer("set-up", "setup", 9.0), layer("a", "offline", 2.0), layer("a", "online", 0.5))
    found = spans([prediction(*made.layers, layer("b", "online", 0.25))], {("online", "b", "p"): 0.125}, LOOPBACK)
    assert [(step.phase, step.name, step.start, step.seconds, step.server) for step in found] == [
        ("offline", "a", 0.0, 2.0, 0.0),
        ("online", "a", 0.0, 0.5, 0.0),
        ("online", "b", 0.5, 0.25, 0.125),
    ]


def test_the_mean_of_predictions_is_shown_and_equal_names_are_one_step() -> None:
    first = prediction(layer("a", "online", 1.0, 10, 2), layer("a", "online", 0.5, 2, 1))
    second = prediction(layer("a", "online", 2.0, 20, 2), layer("a", "online", 0.5, 4, 1))
    (step,) = spans([first, second], {("online", "a", "p"): 1.0}, LOOPBACK)
    assert (step.start, step.seconds, step.server, step.bytes, step.rounds) == (0.0, 2.0, 0.5, 18.0, 3.0)
    assert (step.server_start, step.left, total(step.way)) == (1.5, [(0.0, 1.5)], 0.0)


@pytest.mark.parametrize(
    ("server", "way", "left"),
    [
        # 1000 bytes at 1 byte a microsecond and two round trips: 21 ms.
        (0.01, 0.021, 0.069),
        (0.09, 0.01, 0.0),
        (0.3, 0.0, 0.0),
    ],
)
def test_a_step_is_the_servers_part_the_way_and_what_is_left(server: float, way: float, left: float) -> None:
    made, computed = [prediction(layer("a", "online", 0.1, 1000, 2))], {("online", "a", "p"): server}
    (step,) = spans(made, computed, FAR)
    assert (total(step.way), total(step.left)) == pytest.approx((way, left))
    assert min(server, 0.1) + total(step.way) + total(step.left) == pytest.approx(step.seconds)
    (near,) = spans(made, computed, LOOPBACK)
    assert total(near.way) == 0.0
    assert total(near.left) == pytest.approx(left + way)


def test_the_client_computes_where_the_server_leaves_it_time() -> None:
    made, computed = [prediction(layer("a", "online", 0.1, 1000, 2, 0.03))], {("online", "a", "p"): 0.01}
    (step,) = spans(made, computed, FAR)
    assert step.client == 0.03
    assert (total(step.own), total(step.way), total(step.left)) == pytest.approx((0.03, 0.021, 0.039))
    (busy,) = spans(made, {("online", "a", "p"): 0.08}, FAR)
    assert (busy.client, total(busy.own), total(busy.way), total(busy.left)) == pytest.approx((0.03, 0.02, 0.0, 0.0))


def test_a_server_that_is_not_done_goes_on_in_the_next_step() -> None:
    made = [prediction(layer("a", "online", 1.0), layer("b", "online", 0.0), layer("c", "online", 8.0))]
    first, second, third = spans(made, {("online", "a", "p"): 2.0, ("online", "b", "p"): 3.0}, LOOPBACK)
    assert (first.server_start, second.server_start) == (0.0, 2.0)
    assert (first.left, second.left, third.left) == ([], [], [(5.0, 4.0)])


def test_a_server_that_worked_ahead_is_done_when_the_phase_is() -> None:
    made = [prediction(layer("a", "online", 4.0), layer("b", "online", 1.0))]
    first, second = spans(made, {("online", "a", "p"): 1.0, ("online", "b", "p"): 2.0}, LOOPBACK)
    assert (first.server_start, second.server_start) == (2.0, 3.0)
    assert (total(first.left), total(second.left)) == (2.0, 0.0)


def test_nothing_begins_before_its_phase() -> None:
    made = [prediction(layer("a", "online", 1.0), layer("b", "online", 1.0))]
    found = spans(made, {("online", "a", "p"): 5.0, ("online", "b", "p"): 5.0}, FAR)
    assert [step.server_start for step in found] == [0.0, 0.0]
    assert all(total(step.left) == total(step.way) == 0.0 for step in found)


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
def test_all_that_a_server_computes_is_in_some_step(mode: str, tmp_path: Path) -> None:
    lanner.compile(tiny_classifier(), tiny_samples(), mode=mode).save(tmp_path / "tiny.lanner")
    with ServerProcess([str(tmp_path / "tiny.lanner")], metrics=True) as server, server.connect() as client:
        predictions = [client.predict(sample) for sample in tiny_samples(2)]
        computed = await_counters(server, len(predictions)).computed
    found = spans(predictions, computed, LOOPBACK)
    total = sum(step.server for step in found)
    of_predictions = sum(seconds for (phase, *_), seconds in computed.items() if phase != "setup")
    assert total == pytest.approx(of_predictions / len(predictions))
    assert total > 0
    assert {step.phase for step in found if step.server > 0} == {"offline", "online"}


def test_each_phase_is_drawn_by_itself_in_units_that_fit() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    made = [prediction(layer("a", "offline", 3.0, 10, 1), layer("a", "online", 0.25), layer("b", "online", 0.25))]
    steps = spans(made, {("offline", "a", "p"): 1.0}, LOOPBACK)
    draw_waterfall(figure, steps, ["10 B, 1 round", "", ""])
    offline, online = figure.axes
    assert offline.get_xlabel() == "seconds of the client, offline"
    assert online.get_xlabel() == "milliseconds of the client, online"
    assert [text.get_text() for text in online.get_yticklabels()] == ["a  (p)", "b  (p)"]
    assert [text.get_text() for text in offline.texts] == ["10 B, 1 round"]
    assert offline.get_xlim()[1] > 3.0
    assert online.get_xlim()[1] > 500.0
    # Nothing is on the way over loopback, and so it has no place in the legend.
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert "server computes" in told
    assert "on the way" not in told
