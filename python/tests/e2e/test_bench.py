"""lanner bench, and the server's counters."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers.documents import free_address
from helpers.processes import lanner, serving
from helpers.scraping import Scraped
from lanner.benchmarks.cases import Case, cases
from lanner.benchmarks.measure import measure
from lanner.benchmarks.rows import Row
from lanner.benchmarks.transformers import (
    decoder,
    decoder_file,
    drawn_texts,
    encoder,
    encoder_file,
    vision,
    vision_file,
)
from lanner.benchmarks.trees import complete
from lanner.network import Network
from lanner.options import Protocols

FIELDS = {
    "suite",
    "name",
    "network",
    "shaping",
    "mode",
    "rounding",
    "precision",
    "logit_error",
    "phase",
    "seconds",
    "fastest",
    "server_seconds",
    "bytes",
    "rounds",
    "memory",
    "work",
    "repeat",
    "weights",
    "paper",
    "public_code",
}


def test_figures_of_samples_that_are_given_together_are_those_of_one() -> None:
    ensemble = partial(complete, 2, 2, 3, 1)

    def total(rows: int) -> Row:
        case = Case("trees", "small", partial(ensemble, rows=rows))
        return measure(case, Protocols("cheetah"), [Network("loopback")], 1)[-1]

    one, five = total(1), total(5)
    assert (one.phase, one.repeat, five.repeat) == ("total", 1, 1)
    # What TLS adds is counted of the one alone.
    assert one.bytes / 2 < five.bytes <= one.bytes


@pytest.mark.parametrize(
    ("suite", "name", "phases"),
    [
        ("layers", "fc_128x16", ["offline", "online", "total"]),
        ("activations", "relu_1000", ["offline", "online", "total"]),
        ("activations", "argmax_10", ["offline", "online", "total"]),
        ("activations", "square_2048", ["offline", "online", "total"]),
        ("networks", "mnist_c", ["setup", "offline", "online", "total"]),
    ],
)
def test_bench_measures_a_row_per_phase(tmp_path: Path, suite: str, name: str, phases: list[str]) -> None:
    result = lanner(
        "bench", suite, "--mode", "gazelle", "--only", name, "--repeat", 1, "--save", tmp_path / "rows.json"
    )
    assert result.code == 0, result.errors
    rows = result.document["rows"]
    assert [row["phase"] for row in rows] == phases
    for row in rows:
        assert set(row) == FIELDS
        assert (row["suite"], row["name"], row["network"], row["repeat"]) == (suite, name, "loopback", 1)
        assert (row["weights"], row["shaping"]) == ("trained" if suite == "networks" else "random", "none")
        assert row["rounding"] is None
        assert row["precision"] == ("0.5%" if suite == "networks" else "8 bits")
        assert 0 <= row["logit_error"] < 0.2
        assert row["bytes"] > 0
        assert 0 < row["fastest"] <= row["seconds"]
        assert (row["server_seconds"] is None) == (row["phase"] == "setup")
        assert row["server_seconds"] is None or row["server_seconds"] > 0
        is_whole = (suite, row["phase"]) == ("networks", "total")
        assert (row["work"] is not None) == is_whole
        assert row["memory"] is None or (is_whole and row["memory"] > 0)
    offline, online, total = rows[-3:]
    assert offline["bytes"] + online["bytes"] == total["bytes"]
    assert max(offline["seconds"], online["seconds"]) < total["seconds"]
    assert (online["paper"] is None) == (name == "argmax_10")
    assert result.document["failures"] == []
    assert result.document["machine"]["cores"] >= 1
    assert json.loads((tmp_path / "rows.json").read_text()) == result.document


def test_bench_measures_both_roundings_of_mode_cheetah() -> None:
    totals = {}
    for rounding in ("exact", "faithful"):
        result = lanner(
            "bench", "networks", "--mode", "cheetah", "--rounding", rounding, "--only", "mnist_c", "--repeat", 1
        )
        assert result.code == 0, result.errors
        assert f"--rounding {rounding}" in result.document["command"]
        assert {row["rounding"] for row in result.document["rows"]} == {rounding}
        totals[rounding] = result.document["rows"][-1]
    # Of so small a network most bytes are those of its layers.
    assert totals["faithful"]["bytes"] < totals["exact"]["bytes"]


def test_bench_measures_faithful_rounding_on_networks_alone() -> None:
    result = lanner("bench", "layers", "--mode", "cheetah", "--rounding", "faithful", "--only", "fc_128x16")
    assert result.code == 2
    assert "labels alone" in result.errors


def test_bench_of_a_mode_without_a_choice_refuses_one() -> None:
    result = lanner("bench", "networks", "--mode", "gazelle", "--rounding", "faithful", "--only", "mnist_c")
    assert result.code == 2
    assert "goes with mode cheetah alone" in result.errors


def test_bench_measures_over_each_network_named(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text("bandwidth_bits_per_second = 1e8\nround_trip_seconds = 0.1\n")
    networks = ("--network", f"loopback,{tmp_path / 'slow.toml'}", "--network", "lan")
    result = lanner("bench", "layers", "--only", "fc_128x16", "--repeat", 1, *networks)
    assert result.code == 0, result.errors
    totals = {row["network"]: row for row in result.document["rows"] if row["phase"] == "total"}
    assert list(totals) == ["loopback", "slow", "lan"]
    assert [row["shaping"] for row in totals.values()] == ["none", "in-process relay", "in-process relay"]
    # How many TLS records the same messages take depends on when they are written.
    assert totals["slow"]["bytes"] == pytest.approx(totals["loopback"]["bytes"], rel=0.01)
    assert totals["slow"]["seconds"] > 0.1 * totals["slow"]["rounds"] > 0
    assert str(tmp_path) not in result.document["machine"].values()


def test_a_benchmark_that_fails_is_told_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "models" / "cifar10_resnet20").mkdir(parents=True)
    result = lanner(
        "bench", "networks", "--only", "resnet20,mnist_c", "--repeat", 1, "--data", tmp_path, "--save", tmp_path / "f"
    )
    assert result.code == 6
    assert [failure["name"] for failure in result.document["failures"]] == ["resnet20"]
    assert "resnet20 failed" in result.errors
    assert {row["name"] for row in result.document["rows"]} == {"mnist_c"}
    assert json.loads((tmp_path / "f").read_text()) == result.document


def test_a_drawn_encoder_is_right() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    sizes = {"layers": 1, "width": 8, "heads": 2, "tokens": 4}
    model, sample = encoder("small", **sizes, protocols=Protocols("cheetah"))
    session = onnxruntime.InferenceSession(encoder_file(**sizes).SerializeToString())
    texts = drawn_texts(16, 4, 8)
    expected = np.concatenate([session.run(None, {"x": text[None]})[0] for text in texts])
    assert np.abs(model.predict_fixed(texts) - expected).max() < 0.005 * np.ptp(expected)
    assert np.array_equal(sample, texts[0])


def test_a_drawn_decoder_and_a_drawn_classifier_of_pictures_are_right() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    sizes = {"layers": 1, "width": 8, "heads": 2}
    model, sample = decoder("small", **sizes, tokens=4, words=30, protocols=Protocols("cheetah"))
    session = onnxruntime.InferenceSession(decoder_file(**sizes, tokens=4, words=30).SerializeToString())
    (scores,) = session.run(None, {"x": sample[None]})
    ours = model.predict_fixed(sample[None])
    assert np.abs(ours - scores).max() < 0.02 * np.ptp(scores)
    assert model.manifest.output == "top-k"
    side = {"side": 8, "patch": 4, "classes": 6}
    model, sample = vision("small", **sizes, **side, protocols=Protocols("cheetah"))
    session = onnxruntime.InferenceSession(vision_file(**sizes, **side).SerializeToString())
    (scores,) = session.run(None, {"x": sample[None]})
    assert np.abs(model.predict_fixed(sample[None]) - scores).max() < 0.02 * np.ptp(scores)


def test_transformers_are_a_suite_of_their_own() -> None:
    names = [case.name for case in cases("transformers", "cheetah")]
    assert names[:3] == ["encoder_2x128_128", "encoder_6x384_128", "encoder_12x768_128"]
    assert names[3:] == ["decoder_12x768_64", "vision_12x768_224"]
    assert not cases("transformers", "falcon")


def test_a_suite_without_a_benchmark_of_the_mode_says_which_mode_has_some() -> None:
    told = lanner("bench", "transformers")
    assert told.code == 2
    assert "transformers are not measured in mode auto; give --mode cheetah" in told.errors


def test_names_are_unique_and_suites_complete() -> None:
    every = cases("all", "gazelle")
    assert len({case.name for case in every}) == len(every)
    assert {case.suite for case in every} == {"layers", "activations", "networks", "trees"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "absent"),
        ("--only", "fc_128x16", "--repeat", "0"),
        ("--only", "fc_128x16", "--network", "moon"),
        ("--only", "fc_128x16", "--data", "/absent"),
    ],
)
def test_wrong_options_are_told(arguments: tuple[str, ...]) -> None:
    assert lanner("bench", "layers", *arguments).code == 2


def test_run_meets_the_network_named(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    profile = tmp_path / "far.toml"
    profile.write_text("bandwidth_bits_per_second = 1000000000\nround_trip_seconds = 0.05\n")
    result = lanner("run", tiny_label, samples_file, "--network", profile)
    assert result.code == 0, result.errors
    online = result.document["predictions"][0]["phases"]["online"]
    assert online["seconds"] > 0.05 * online["rounds"] > 0


def test_metrics_count_predictions(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    metrics = free_address()
    with serving(tmp_path / "state", tiny_label, "--metrics", metrics) as server:
        assert lanner("predict", server.address, samples_file, *server.pin).code == 0
        assert server.document["metrics"] == metrics
        scraped = Scraped.of_server(metrics)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{metrics}/", timeout=10)
    assert scraped.total("lanner_predictions_total") == 3
    step = {"step": "conv1", "protocol": "cheetah.conv", "phase": "online", "mode": "auto"}
    assert scraped.total("lanner_step_seconds_total", **step) > 0
