"""Predictions by workers on a Ray cluster of one node: in order, equal to those of one process, and clear errors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner as library
import lanner.ray as on_ray
from helpers.clusters import nodes
from helpers.models import save_model, tiny_classifier, tiny_samples
from helpers.processes import HUNG, Serving, lanner, serving
from lanner.datasets import load_digits

X = tiny_samples(20, seed=5)

#: The networks that come with the package.
EMBEDDED = Path(library.__file__).parent / "networks"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nodes(1, cpus=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def served(tiny_logits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served"), tiny_logits) as server:
        yield server


def in_blocks(x: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401 - Ray's dataset
    """A dataset of blocks that are not of one size, as its column ``data``."""
    import ray.data

    return ray.data.from_numpy([x[:3], x[3:10], x[10:]])


def options(server: Serving, base: Path, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - of any type
    trusted = {"pin": server.document["fingerprint"], "workers": 2, "batch_size": 4, "column": "data"}
    return {**trusted, "state_dir": str(base), **others}


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_answers_are_those_of_one_process_in_order(
    served: Serving,
    tmp_path: Path,
    tiny_logits: Path,
) -> None:
    made = list(on_ray.predict_each(in_blocks(X), served.address, **options(served, tmp_path)))
    with library.Client(served.address, pin=served.document["fingerprint"]) as client:
        alone = client.predict_batch(X)
    assert [prediction.index for prediction in made] == list(range(len(X)))
    assert [prediction.logits for prediction in made] == [prediction.logits for prediction in alone]
    reference = library.load(tiny_logits).predict_integers(X)[0].tolist()
    assert [prediction.integers for prediction in made] == reference
    assert all(prediction.phases["online"].seconds > 0 for prediction in made)
    folders = sorted(tmp_path.glob("worker-*"))
    assert 1 <= len(folders) <= 2
    assert {path.stat().st_mode & 0o777 for path in (tmp_path, *folders)} == {0o700}
    # The same workers' directories serve the next who come, here with inputs in files that workers read.
    (tmp_path / "files").mkdir(mode=0o700)
    paths = [str(tmp_path / "files" / f"{index}.npy") for index in range(3)]
    for path, sample in zip(paths, X, strict=False):
        np.save(path, sample)
    import ray.data

    rows = [{"scan": path} for path in paths]
    answers = on_ray.predict(
        ray.data.from_items(rows), served.address, **options(served, tmp_path, workers=1, column="scan")
    )
    told = answers.take_all()
    assert [row["index"] for row in told] == [0, 1, 2]
    assert [list(row["logits"]) for row in told] == [prediction.logits for prediction in alone[:3]]
    assert all(row["seconds"] > 0 and row["bytes"] > 0 for row in told)
    assert sorted(tmp_path.glob("worker-*")) == folders


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_an_input_out_of_range_is_named_after_those_before_it(
    served: Serving,
    tmp_path: Path,
) -> None:
    beyond = X.copy()
    beyond[13, 0, 2, 1] = 1e6
    made: list[int] = []
    with pytest.raises(library.InputError, match=r"row 13: element \[0, 0, 2, 1\] is outside"):
        made.extend(
            prediction.index
            for prediction in on_ray.predict_each(in_blocks(beyond), served.address, **options(served, tmp_path))
        )
    with pytest.raises(library.InputError, match="no column 'x' but data"):
        list(on_ray.predict_each(in_blocks(X), served.address, **options(served, tmp_path, column="x")))


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_server_that_is_another_or_none_is_told_at_once(
    served: Serving,
    tmp_path: Path,
) -> None:
    for address, pin in ((served.address, "sha256:" + "0" * 64), ("127.0.0.1:1", served.document["fingerprint"])):
        with pytest.raises(library.TransportError) as caught:
            list(on_ray.predict_each(in_blocks(X), address, **options(served, tmp_path, pin=pin, workers=1)))
        assert type(caught.value) is library.TransportError


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_wrong_arguments_are_told_before_anybody_works(tmp_path: Path) -> None:
    for wrong in ({"workers": 0}, {"batch_size": 0}, {"ahead": -1}, {"patience": 0}):
        with pytest.raises(library.MisuseError):
            on_ray.predict_each(in_blocks(X), "127.0.0.1:1", state_dir=str(tmp_path), **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("mode", ["cheetah", "tabula"])
def test_a_search_for_bits_finds_what_one_process_finds(mode: str) -> None:
    here = library.compile(tiny_classifier(), tiny_samples(), mode=mode, output="logits", name="tiny")
    there = library.compile(
        tiny_classifier(), tiny_samples(), mode=mode, output="logits", name="tiny", tracer=on_ray.Tracer()
    )
    assert there.report() == here.report()
    assert np.array_equal(there.predict_integers(X)[0], here.predict_integers(X)[0])


@pytest.mark.slow
def test_a_command_without_what_it_needs_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    pin = ("--pin", "sha256:" + "0" * 64)
    assert lanner("predict", "127.0.0.1:1", tmp_path / "x.npy", *pin, "--workers", 2).code == 2
    assert lanner("predict", "127.0.0.1:1", tmp_path / "x.npy", *pin, "--ray", "local", "--workers", 0).code == 2
    assert lanner("predict", "127.0.0.1:1", tmp_path / "x.npy", *pin, "--ray", "local", "--refill", 1).code == 2
    assert lanner("predict", "127.0.0.1:1", tmp_path / "none.npy", *pin, "--ray", "local").code == 6


@pytest.mark.slow
def test_the_command_gives_what_it_gives_without_a_cluster(served: Serving, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X[:15])
    np.savez(tmp_path / "b.npz", x=X[15:])
    command = ("predict", served.address, tmp_path / "a.npy", tmp_path / "b.npz", *served.pin)
    here, there = lanner(*command), lanner(*command, "--ray", "local", "--workers", 2)
    assert (here.code, there.code) == (0, 0), there.errors
    told = ("input", "index", "label", "logits", "mode", "model")
    wanted, found = (
        [[prediction[name] for name in told] for prediction in finished.document["predictions"]]
        for finished in (here, there)
    )
    assert found == wanted
    wrong = lanner(*command[:-1], "sha256:" + "0" * 64, "--ray", "local", "--workers", 1)
    assert (wrong.code, wrong.document["error"]["kind"]) == (5, "transport")


@pytest.mark.slow
def test_a_command_compiles_what_it_compiles_without_a_cluster(tmp_path: Path) -> None:
    network = save_model(tmp_path / "tiny.onnx", tiny_classifier())
    np.save(tmp_path / "x.npy", tiny_samples())
    command = ("compile", network, "-o", tmp_path / "tiny.lanner", "--calibration", tmp_path / "x.npy")
    here, there = lanner(*command), lanner(*command, "--ray", "local")
    assert (here.code, there.code) == (0, 0), there.errors
    for told in (here.document, there.document):
        # Its salt is drawn each time.
        del told["commitment"]
    assert there.document == here.document


@pytest.mark.slow
def test_an_interrupted_command_leaves_nobody_behind(served: Serving, tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", tiny_samples(20_000))
    base = tmp_path / "state" / "ray"
    command = [sys.executable, "-m", "lanner", "predict", served.address, str(tmp_path / "many.npy"), *served.pin]
    command += ["--ray", "local", "--workers", "1", "--state-dir", str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not list(base.glob("worker-0/material")) and process.poll() is None:
            time.sleep(0.1)
        worker = int((base / "worker-0" / "held").read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(HUNG) == 130
    await_end([worker])


@pytest.mark.slow
def test_an_interrupted_search_leaves_nobody_behind(tmp_path: Path) -> None:
    x = np.concatenate([load_digits(split)[0] for split in ("train", "test")])
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-m", "lanner", "compile", str(EMBEDDED / "mnist_d.onnx"), "--ray", "local"]
    command += ["-o", str(tmp_path / "d.lanner"), "--calibration", str(tmp_path / "x.npy"), "--input-range", "0,1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while "ray::_as_task" not in (begun := descendants(process.pid)).values() and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=HUNG)
    assert (process.returncode, told.splitlines()[-1]) == (130, "error: interrupted"), told
    await_end(begun)
    assert not (tmp_path / "d.lanner").exists()


def descendants(pid: int) -> dict[int, str]:
    """The processes that one has begun, and those have, with the first word of their commands."""
    found = {}
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, tasks.read_text().split()):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().split("\0")[0]
                found |= descendants(child)
    return found


def await_end(processes: Iterable[int]) -> None:
    """Wait until none of the processes is there."""
    deadline = time.monotonic() + HUNG
    while left := [pid for pid in processes if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.slow
def test_measures_on_a_cluster_are_those_of_one_process(tiny_logits: Path, samples_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "calibration.npy", tiny_samples())
    command = ("evaluate", tiny_logits, "--data", samples_file)
    for what in (("--secure",), ("--bits", "6..8", "--calibration", tmp_path / "calibration.npy")):
        here, there = lanner(*command, *what), lanner(*command, *what, "--ray", "local")
        assert (here.code, there.code) == (0, 0), there.errors
        assert there.document == here.document
    assert lanner(*command, "--ray", "local").code == 2
    measured = lanner("bench", "layers", "--only", "fc_128x16", "--mode", "cheetah", "--repeat", 1, "--ray", "local")
    assert measured.code == 0, measured.errors
    assert {row["name"] for row in measured.document["rows"]} == set(measured.document["machines"]) == {"fc_128x16"}
