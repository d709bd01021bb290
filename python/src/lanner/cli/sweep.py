"""``evaluate --bits`` and ``inspect --data``: what accuracy each number of bits leaves that lookups keep."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanner.cli.arguments import KINDS, LimitKeywords, add_csv_option, csv_header, read_limits
from lanner.cli.labelled import Labelled
from lanner.cli.measured import BATCH, SHOWN, against_float, as_results, document_of, integers_of, metric_cell
from lanner.cli.output import Output
from lanner.cli.written import Written
from lanner.curve import SIZE, Point, draw_curve, read_bits
from lanner.errors import MisuseError
from lanner.evaluation import Results, Task
from lanner.inputs import NUMPY, as_batch, load_arrays, read_sources, stack_sources
from lanner.model import Model
from lanner.plots import check_plots, figure
from lanner.ray.cluster import cluster
from lanner.ray.tasks import on_each, packed, unpacked
from lanner.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """The options that ask for other numbers of bits, in a table and a plot."""
    add_bits_options(parser)
    parser.add_argument(
        "--plot",
        type=Path,
        action=Written,
        metavar="F.png",
        help="draw the accuracy over --bits into a .png, .svg or .pdf file (needs matplotlib)",
    )


def add_bits_options(parser: argparse.ArgumentParser, default: str = "") -> None:
    """The options that ask for other numbers of bits; `default` says which are taken where none are given."""
    parser.add_argument(
        "--bits",
        type=read_bits,
        metavar="A..B",
        help=f"measure the model compiled for mode tabula with lookups of A to B bits; needs --calibration{default}",
    )
    parser.add_argument("--calibration", type=Path, metavar="X.npy", help=f"typical samples for --bits: {KINDS}")
    add_csv_option(parser)


def check_sweep(options: argparse.Namespace) -> None:
    """Check, before anything is computed, that what goes with --bits is given with it alone."""
    if options.bits is None:
        for name in ("calibration", "csv_header", "plot"):
            if getattr(options, name) is not None:
                raise MisuseError(f"--{name.replace('_', '-')} goes with --bits", fix="give both, or leave it out")
        return
    check_samples(options)
    if options.secure:
        raise MisuseError(
            "--bits measures the fixed-point reference, which secure predictions equal",
            where="--secure",
            fix="compile with --mode tabula --kept-bits K and evaluate that with --secure",
        )
    if options.plot is not None:
        check_plots()


def check_samples(options: argparse.Namespace) -> None:
    """Check that there are samples to compile the network again with.

    Raises:
        MisuseError: If there are none.
    """
    if options.calibration is None:
        raise MisuseError(
            "each number of bits has the network compiled again, and a model keeps no samples to calibrate it on",
            where="--calibration",
            fix="give the typical samples that the model was compiled with",
        )


def sweep(options: argparse.Namespace, model: Model, labelled: Labelled, output: Output) -> int:
    """Measure the network with each number of bits that its lookups keep."""
    document = measure_bits(options, options.bits, model, labelled, output, ray=options.ray)
    show_bits(document, output)
    if options.plot is not None:
        with figure(options.plot, SIZE) as drawn:
            draw_bits(drawn, model, document)
        output.say(f"drawn in {options.plot}")
    output.document(document)
    return 0


def measure_bits(
    options: argparse.Namespace,
    bits: Sequence[int],
    model: Model,
    labelled: Labelled,
    output: Output,
    *,
    ray: str | None = None,
) -> dict[str, Any]:
    """The network's metrics on labelled samples, as float and with each number of bits, as a document.

    Args:
        options: The command's: samples to calibrate on, and what a prediction may take.
        bits: The numbers of bits.
        model: The network.
        labelled: The samples.
        output: Where progress goes.
        ray: The cluster whose tasks measure, if any do.
    """
    samples, x, task = _calibration_of(options, model), labelled.x, labelled.task
    batches = [x[start : start + BATCH] for start in range(0, len(x), BATCH)]
    exact = task.of_scores(np.concatenate([model.predict_float(batch) for batch in batches]))
    document: dict[str, Any] = {"samples": len(x), "task": task.kind, "float": document_of(task, exact), "bits": []}
    measuring = _Measuring(samples, read_limits(options), batches, task, exact)
    with output.progress("bits", len(bits)) as advance:
        for measured in _of_each(ray, bits, model, measuring):
            document["bits"].append(measured)
            advance(f"{measured['bits']} bits")
    return document


@dataclass(frozen=True, slots=True)
class _Measuring:
    """What each number of bits is measured with.

    Attributes:
        samples: Those that the network is calibrated on.
        limits: What a prediction may take.
        batches: Those that it is measured on.
        task: What it is measured by.
        exact: What it gives as float.
    """

    samples: NDArray[np.float32]
    limits: LimitKeywords
    batches: list[NDArray[np.float32]]
    task: Task
    exact: Results

    def of(self, kept: int, model: Model) -> dict[str, Any]:
        """The metrics of a network whose lookups keep so many bits."""
        narrow = model.keeping(kept, self.samples, **self.limits)
        return {"bits": kept, **_measured(narrow, self.batches, self.task, self.exact)}


def _of_each(ray: str | None, bits: Sequence[int], model: Model, measuring: _Measuring) -> Iterator[dict[str, Any]]:
    """The metrics with each number of bits, by tasks on a cluster where one is named."""
    if ray is None:
        yield from (measuring.of(kept, model) for kept in bits)
        return
    with cluster(ray):
        yield from on_each(_as_task, bits, packed(model), model.name, measuring)


def _as_task(kept: int, file: bytes, name: str, measuring: _Measuring) -> dict[str, Any]:
    with unpacked(file, name, **measuring.limits) as model:
        return measuring.of(kept, model)


def draw_bits(drawn: Figure, model: Model, document: Mapping[str, Any]) -> None:
    """Draw the first metric of what `measure_bits` gave."""
    metric = next(name for name in SHOWN if name in document["float"])
    points = [Point(row["bits"], row[metric]) for row in document["bits"] if row[metric] is not None]
    draw_curve(drawn, model.name, SHOWN[metric][0], points, document["float"][metric])


def _measured(model: Model, batches: list[NDArray[np.float32]], task: Task, exact: Results) -> dict[str, Any]:
    """What a model reaches on the samples, and what its lookups keep."""
    integers, overflows = zip(*(integers_of(model, batch) for batch in batches), strict=True)
    fixed = task.of_scores(as_results(np.concatenate(integers), model))
    found = document_of(task, fixed) | against_float(fixed, exact)
    return found | {"overflows": sum(overflows), "lookups": model.report()["lookups"]}


def _calibration_of(options: argparse.Namespace, model: Model) -> NDArray[np.float32]:
    source, entry = options.calibration, model.manifest.input
    header = csv_header(options, source)
    if source.suffix.lower() in NUMPY and not source.is_dir():
        return as_batch(load_arrays(source), entry, str(source))
    return stack_sources(read_sources([source], header), entry, model.manifest.image, model.name)


def show_bits(document: Mapping[str, Any], output: Output, title: str = "") -> None:
    """Print what `measure_bits` gave as a table."""
    shown = [name for name in SHOWN if name in document["float"]]
    rows: list[tuple[object, ...]] = [
        ("float", *(metric_cell(name, document["float"]) for name in shown), None, None, None)
    ]
    for row in document["bits"]:
        kept = sorted({lookup["kept"] for lookup in row["lookups"]})
        said = "" if not kept else str(kept[0]) if len(kept) == 1 else f"{kept[0]}..{kept[-1]}"
        agree = row.get("labels_agree", row.get("largest_difference"))
        rows.append((row["bits"], *(metric_cell(name, row) for name in shown), said, agree, row["overflows"]))
    against = "off by at most" if document["task"] == "values" else "labels as float"
    output.table(("bits", *(SHOWN[name][0] for name in shown), "kept by lookups", against, "overflows"), rows, title)
    output.say(f"{counted(document['samples'], 'sample')}; bits count a sign and room for twice the calibrated range")
