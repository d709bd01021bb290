"""``lanner evaluate``: how good the float, the fixed-point and the secure computation are on labelled data."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import agreement_name, agrees
from lanner.cli.arguments import LimitKeywords, add_limit_options, read_limits
from lanner.cli.labelled import add_data_options, check_limit, read_labelled
from lanner.cli.measured import (
    BATCH,
    SHOWN,
    against_float,
    as_results,
    document_of,
    metric_cell,
    metric_text,
    saturating_of,
)
from lanner.cli.on_ray import add_worker_options, check_workers, in_pieces, this_host, workers_on
from lanner.cli.output import Output
from lanner.cli.predict import collect, predict_samples
from lanner.cli.process import ServerProcess
from lanner.cli.sweep import add_sweep_options, check_sweep, sweep
from lanner.divergence import parting
from lanner.errors import MisuseError
from lanner.evaluation import Results, Task
from lanner.inputs import samples_of
from lanner.manifest import Manifest
from lanner.model import Model, load
from lanner.prediction import Prediction
from lanner.ray.cluster import cluster
from lanner.wording import counted

NAME = "evaluate"
#: Samples that are debugged at most.
MOST_PARTED = 20

HELP = "measure accuracy, or a regression's errors, on labelled data: float, fixed-point and secure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.lanner")
    add_data_options(parser, required=True)
    parser.add_argument("--secure", action="store_true", help="also run every sample through the protocol")
    parser.add_argument(
        "--debug",
        action="store_true",
        help=f"also report, for the first {MOST_PARTED} samples with differing labels, the layer where float and "
        "fixed point differ",
    )
    add_sweep_options(parser)
    add_worker_options(parser, "run --secure by clients, and --bits by tasks,")
    add_limit_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Evaluate the references and, if asked, the protocol, which must agree with the fixed-point reference."""
    check_limit(options)
    check_sweep(options)
    _check_ray(options)
    limits = read_limits(options)
    model = load(options.model, **limits)
    labelled = read_labelled(options, model)
    x, task = labelled.x, labelled.task
    if options.bits is not None:
        return sweep(options, model, labelled, output)
    exact, integers, overflows, saturated = _references(model, x, output)
    results = {"float": task.of_scores(exact), "fixed": task.of_scores(as_results(integers, model))}
    document: dict[str, Any] = {"samples": len(x), "task": task.kind}
    document |= {name: document_of(task, result) for name, result in results.items()}
    document["fixed"] |= against_float(results["fixed"], results["float"])
    document["fixed"] |= {"overflows": overflows, "saturated": saturated}
    document["secure"] = None
    predictions = []
    if options.secure:
        predictions = _secure(options, limits, model.manifest.input.clip(x), output)
        results["secure"] = task.of_predictions(predictions)
        agree = [
            agrees(prediction, reference, model) for prediction, reference in zip(predictions, integers, strict=True)
        ]
        compared = {agreement_name(model): sum(agree), "samples": len(predictions)}
        document["secure"] = document_of(task, results["secure"]) | compared
    document["parted"] = _parted(model, x, results, output) if options.debug else None
    _show(document, task, predictions, output)
    _show_parted(document["parted"], model.manifest, output)
    output.document(document)
    for sentence in _losses(task, results):
        output.warn(sentence)
    return 0


def _references(
    model: Model, x: NDArray[np.float32], output: Output
) -> tuple[NDArray[np.float32], NDArray[np.int64], int, dict[str, Any]]:
    """Float logits, fixed-point integer logits, the overflows met, and where values saturated.

    Inputs out of range count among the overflows.
    """
    exact, integers, overflows = [], [], 0
    samples, layers = 0, Counter[str]()
    with output.progress("references", len(x)) as advance:
        for start in range(0, len(x), BATCH):
            batch = x[start : start + BATCH]
            exact.append(model.predict_float(batch))
            values, met, saturated = saturating_of(model, batch)
            samples += sum(map(bool, saturated))
            for counts in saturated:
                layers.update(counts)
            integers.append(values)
            overflows += met
            advance(steps=len(batch))
    return np.concatenate(exact), np.concatenate(integers), overflows, {"samples": samples, "layers": dict(layers)}


def _check_ray(options: argparse.Namespace) -> None:
    """Check that what is asked of a cluster is there to be done on one."""
    check_workers(options)
    if options.ray is not None and not options.secure and options.bits is None:
        raise MisuseError("--ray goes with --secure or --bits", fix="give one of them; references run on one machine")


def _secure(
    options: argparse.Namespace, limits: LimitKeywords, x: NDArray[np.float32], output: Output
) -> list[Prediction]:
    """Run every sample through the protocol, with the server in another process."""
    models, samples = [str(options.model)], samples_of(x)
    if options.ray is None:
        with ServerProcess(models, limits=limits) as server, server.connect() as client:
            return predict_samples(client, samples, output, "secure")
    with (
        cluster(options.ray),
        ServerProcess(models, limits=limits, host=this_host(options)) as server,
        # Nobody comes back to this server for what would be kept.
        workers_on(options, server.address, server.trusted(), ahead=0) as pool,
    ):
        return collect(pool.predict(in_pieces(samples)), output, len(samples), "secure")


def _parted(model: Model, x: NDArray[np.float32], results: dict[str, Results], output: Output) -> list[dict[str, Any]]:
    """The samples whose label float and fixed point disagree on, with the layer at which they part."""
    exact, fixed = results["float"].labels, results["fixed"].labels
    if exact is None or fixed is None:
        raise MisuseError("a regression has no labels to disagree on", where="--debug", fix="lanner debug one sample")
    differ = np.flatnonzero((exact != fixed).reshape(len(x), -1).any(1))[:MOST_PARTED]
    found = []
    with output.progress("debugging", len(differ)) as advance:
        for index in differ:
            where = parting(model, model.manifest.input.clip(x[index]))
            labels = {"index": int(index), "float": exact[index].tolist(), "fixed": fixed[index].tolist()}
            found.append({**labels, **asdict(where)})
            advance()
    return found


def _show_parted(parted: list[dict[str, Any]] | None, manifest: Manifest, output: Output) -> None:
    if parted is None:
        return
    if not parted:
        output.say("float and fixed point agree on every label")
        return

    def label(of: list[int] | int) -> object:
        return of if isinstance(of, list) or manifest.classes is None else manifest.classes[of]

    rows = [
        (entry["index"], label(entry["float"]), label(entry["fixed"]), entry["layer"], entry["what"])
        for entry in parted
    ]
    output.table(("sample", "float", "fixed-point", "differ at", "where"), rows)


def _losses(task: Task, results: dict[str, Results]) -> list[str]:
    """What fixed point loses of the float network's quality beyond the standard error, in sentences."""
    exact, fixed = task.measure(results["float"]), task.measure(results["fixed"])

    def sentence(name: str) -> str:
        found, due, error = (
            metric_text(name, value) for value in (fixed[name].value, exact[name].value, exact[name].error)
        )
        return (
            f"fixed-point {SHOWN[name][0]} {found} is below float's {due} by more than its standard error {error}; "
            "calibrate on samples like these"
        )

    return [
        sentence(name)
        for name in ("accuracy", "auc", "r2")
        if name in exact and name in fixed and exact[name].value - fixed[name].value > exact[name].error
    ]


def _show(document: dict[str, Any], task: Task, predictions: list[Prediction], output: Output) -> None:
    samples, fixed, secure = document["samples"], document["fixed"], document["secure"]
    against = f"labels as float on {fixed.get('labels_agree')} of {samples}"
    if "largest_difference" in fixed:
        against = f"off by at most {fixed['largest_difference']:.3g}"
    computed = [("float", document["float"], ""), ("fixed-point", fixed, against)]
    if secure is not None:
        of = f"{secure['samples']}"
        if "agrees_with_reference" in secure:
            agreement = f"as fixed-point on {secure['agrees_with_reference']} of {of}"
        else:
            agreement = f"within the bound of fixed-point on {secure['within_bound_of_reference']} of {of}"
        computed.append(("secure", secure, agreement))
    shown = [name for name in SHOWN if name in document["float"]]
    rows = [(name, *(metric_cell(metric, values) for metric in shown), said) for name, values, said in computed]
    output.table(("computation", *(SHOWN[metric][0] for metric in shown), "agreement"), rows)
    if task.kind == "labels":
        _show_labels(computed, output)
    output.say(f"{counted(samples, 'sample')}, {counted(fixed['overflows'], 'overflow')}")
    saturated = fixed["saturated"]
    if saturated["samples"]:
        where = ", ".join(f"{name} {count}" for name, count in saturated["layers"].items())
        output.say(f"values saturated on {counted(saturated['samples'], 'sample')}: {where}")
    output.costs(predictions)


def _show_labels(computed: list[tuple[str, dict[str, Any], str]], output: Output) -> None:
    """A row for each label: its metrics in every computation."""
    columns = [(name, metric) for name, _, _ in computed for metric in ("accuracy", "auc")]
    labels = zip(*(values["labels"] for _, values, _ in computed), strict=True)
    rows = [
        (
            label[0]["class_name"] or label[0]["label"],
            *(metric_cell(metric, measured) for measured in label for metric in ("accuracy", "auc")),
        )
        for label in labels
    ]
    output.table(("label", *(f"{name} {SHOWN[metric][0]}" for name, metric in columns)), rows)
