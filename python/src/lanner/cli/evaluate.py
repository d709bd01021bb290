"""``lanner evaluate``: how good the float, the fixed-point and the secure computation are on labelled data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import agreeing, agrees
from lanner.cli.arguments import KINDS, LimitKeywords, add_limit_options, check_target, read_limits
from lanner.cli.output import Output
from lanner.cli.predict import shown_if_broken
from lanner.cli.process import ServerProcess
from lanner.curve import Point, draw, read_bits
from lanner.errors import InputError, MisuseError
from lanner.evaluation import Results, Task, defined, task_of
from lanner.inputs import NUMPY, as_batch, load_array, load_truth, read_sources, stack_sources
from lanner.model import Model, load
from lanner.plots import check_plots
from lanner.prediction import Prediction
from lanner.wording import counted

NAME = "evaluate"
HELP = "measure accuracy, or a regression's errors, on labelled data: float, fixed-point and secure"

#: Samples computed at once by the references.
BATCH = 256

#: How metrics are called in tables, and whether they are shares.
SHOWN = {"accuracy": ("accuracy", True), "auc": ("AUC", False), "r2": ("R2", False)}
SHOWN["mean_absolute_error"] = ("mean absolute error", False)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.lanner")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="X.npz",
        help="samples `x` and what is true of them `y`: class names or indices, labels or values",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N samples")
    parser.add_argument("--secure", action="store_true", help="also run every sample through the protocol")
    parser.add_argument(
        "--bits",
        type=read_bits,
        metavar="A..B",
        help="measure the network as mode tabula computes it, compiled again for lookups that keep each number of bits "
        "from A to B; takes --calibration, since MODEL.lanner keeps the float network and no samples",
    )
    parser.add_argument(
        "--calibration", type=Path, metavar="X.npy", help=f"typical samples for --bits, as `compile` takes: {KINDS}"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="F.png", help="draw the accuracy over --bits: .png, .svg or .pdf, with matplotlib"
    )
    add_limit_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Evaluate the references and, if asked, the protocol, which must agree with the fixed-point reference."""
    if options.limit is not None and options.limit < 1:
        raise MisuseError(f"--limit is {options.limit}", fix="give 1 or more")
    _check_bits(options)
    limits = read_limits(options)
    model = load(options.model, **limits)
    x, y = _read_data(options.data, model, options.limit)
    task = task_of(model.manifest, model.predict_float(x[:1]).shape[1], y, options.data)
    if options.bits is not None:
        return _sweep(options, model, task, x, output)
    exact, integers, overflows = _references(model, x, output)
    results = {"float": task.of_scores(exact), "fixed": task.of_scores(_as_results(integers, model))}
    document: dict[str, Any] = {"samples": len(x), "task": task.kind}
    document |= {name: _document(task, result) for name, result in results.items()}
    document["fixed"] |= _against_float(results["fixed"], results["float"]) | {"overflows": overflows}
    document["secure"] = None
    predictions = []
    if options.secure:
        predictions = _secure(options.model, limits, x, output)
        results["secure"] = task.of_predictions(predictions)
        agree = [
            agrees(prediction, reference, model) for prediction, reference in zip(predictions, integers, strict=True)
        ]
        compared = {"agrees_with_reference": sum(agree), "samples": len(predictions)}
        document["secure"] = _document(task, results["secure"]) | compared
    _show(document, task, predictions, output)
    output.document(document)
    for sentence in _losses(task, results):
        output.warn(sentence)
    return 0


def _check_bits(options: argparse.Namespace) -> None:
    """Check, before anything is computed, that what goes with --bits is given with it alone."""
    if options.bits is None:
        for name in ("calibration", "plot"):
            if getattr(options, name) is not None:
                raise MisuseError(f"--{name} goes with --bits", fix="give both, or leave it out")
        return
    if options.calibration is None:
        raise MisuseError(
            "--bits compiles the network again, and a model keeps no samples to calibrate it on",
            where="--calibration",
            fix="give the typical samples that the model was compiled with",
        )
    if options.secure:
        raise MisuseError(
            "--bits measures the fixed-point reference, which secure predictions equal",
            where="--secure",
            fix="compile with --mode tabula --kept-bits K and evaluate that with --secure",
        )
    if options.plot is not None:
        check_plots()
        check_target(options.plot)


def _sweep(
    options: argparse.Namespace, model: Model, task: Task, x: NDArray[np.float32], output: Output
) -> int:
    """Measure the network with each number of bits that its lookups keep."""
    samples = _calibration_of(options.calibration, model)
    exact = task.of_scores(np.concatenate([model.predict_float(x[i : i + BATCH]) for i in range(0, len(x), BATCH)]))
    document: dict[str, Any] = {"samples": len(x), "task": task.kind, "float": _document(task, exact), "bits": []}
    with output.progress("bits", len(options.bits)) as advance:
        for bits in options.bits:
            advance(f"{bits} bits", 0)
            document["bits"].append({"bits": bits, **_with_bits(bits, model, samples, task, exact, x, options)})
            advance()
    _show_sweep(document, output)
    if options.plot is not None:
        metric = next(name for name in SHOWN if name in document["float"])
        points = [Point(row["bits"], row[metric]) for row in document["bits"] if row[metric] is not None]
        draw(model.name, SHOWN[metric][0], points, document["float"][metric], options.plot)
        output.say(f"drawn in {options.plot}")
    output.document(document)
    return 0


def _with_bits(
    bits: int,
    model: Model,
    samples: NDArray[np.float32],
    task: Task,
    exact: Results,
    x: NDArray[np.float32],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """What lookups that keep so many bits leave of the network."""
    narrow = model.keeping(bits, samples, **read_limits(options))
    integers, overflows = _fixed(narrow, x)
    fixed = task.of_scores(_as_results(integers, narrow))
    lookups = narrow.report()["lookups"]
    return _document(task, fixed) | _against_float(fixed, exact) | {"overflows": overflows, "lookups": lookups}


def _calibration_of(source: Path, model: Model) -> NDArray[np.float32]:
    entry = model.manifest.input
    if source.suffix.lower() in NUMPY and not source.is_dir():
        return as_batch(load_array(source), entry, str(source))
    return stack_sources(read_sources([source]), entry, model.manifest.image, model.name)


def _show_sweep(document: dict[str, Any], output: Output) -> None:
    shown = [name for name in SHOWN if name in document["float"]]
    rows: list[tuple[object, ...]] = [("float", *(_cell(name, document["float"]) for name in shown), None, None, None)]
    for row in document["bits"]:
        kept = sorted({lookup["kept"] for lookup in row["lookups"]})
        said = "" if not kept else str(kept[0]) if len(kept) == 1 else f"{kept[0]}..{kept[-1]}"
        agree = row.get("labels_agree", row.get("largest_difference"))
        rows.append((row["bits"], *(_cell(name, row) for name in shown), said, agree, row["overflows"]))
    against = "off by at most" if document["task"] == "values" else "labels as float"
    output.table(("bits", *(SHOWN[name][0] for name in shown), "kept by lookups", against, "overflows"), rows)
    output.say(f"{counted(document['samples'], 'sample')}; bits count a sign and room for twice the calibrated range")


def _read_data(path: Path, model: Model, limit: int | None) -> tuple[NDArray[np.float32], NDArray[Any]]:
    x = as_batch(load_array(path, "x"), model.manifest.input, f"{path}, x")
    y = load_truth(path)
    if len(x) != len(y):
        raise InputError(
            f"it has {counted(len(x), 'sample')} and {counted(len(y), 'label')}",
            where=str(path),
            fix="give one label each",
        )
    return x[:limit], y[:limit]


def _references(
    model: Model, x: NDArray[np.float32], output: Output
) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
    """Float logits, fixed-point integer logits, and the overflows met; inputs out of range count among these."""
    exact, integers, overflows = [], [], 0
    with output.progress("references", len(x)) as advance:
        for start in range(0, len(x), BATCH):
            batch = x[start : start + BATCH]
            exact.append(model.predict_float(batch))
            values, met = _fixed(model, batch)
            integers.append(values)
            overflows += met
            advance(steps=len(batch))
    return np.concatenate(exact), np.concatenate(integers), overflows


def _fixed(model: Model, x: NDArray[np.float32]) -> tuple[NDArray[np.int64], int]:
    """Fixed-point integer logits, and the overflows met; inputs out of range count among these."""
    within = model.manifest.input.clip(x)
    values, met = model.predict_integers(within)
    return values, met + int((within != x).reshape(len(x), -1).any(1).sum())


def _as_results(integers: NDArray[np.int64], model: Model) -> NDArray[np.float64]:
    return integers / np.float64(model.logits_scale)


def _secure(path: Path, limits: LimitKeywords, x: NDArray[np.float32], output: Output) -> list[Prediction]:
    """Run every sample through the protocol, with the server in another process."""
    predictions: list[Prediction] = []
    with (
        shown_if_broken(predictions, output),
        ServerProcess([str(path)], limits=limits) as server,
        server.connect() as client,
    ):
        entry = client.manifest.input
        with output.progress("secure", len(x)) as advance:
            for index, sample in enumerate(x):
                prediction = client.predict(entry.clip(sample)).placed(None, index)
                predictions.append(prediction)
                output.predictions.append(prediction.document())
                advance()
    return predictions


def _document(task: Task, results: Results) -> dict[str, Any]:
    """A computation's metrics; those of each label where there are several."""
    found: dict[str, Any] = {name: defined(metric) for name, metric in task.measure(results).items()}
    by_label = task.by_label(results)
    return found | ({"labels": by_label} if by_label else {})


def _against_float(fixed: Results, exact: Results) -> dict[str, Any]:
    """How the fixed-point results differ from the float's."""
    if fixed.labels is not None and exact.labels is not None:
        return {"labels_agree": agreeing(fixed.labels, exact.labels)}
    if fixed.values is not None and exact.values is not None:
        return {"largest_difference": float(np.abs(fixed.values - exact.values).max())}
    return {}


def _losses(task: Task, results: dict[str, Results]) -> list[str]:
    """What fixed point loses of the float network's quality beyond the standard error, in sentences."""
    exact, fixed = task.measure(results["float"]), task.measure(results["fixed"])
    return [
        f"fixed-point {SHOWN[name][0]} {_text(name, fixed[name].value)} is below float's "
        f"{_text(name, exact[name].value)} by more than its standard error {_text(name, exact[name].error)}; "
        "calibrate on samples like these"
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
        agreement = f"as fixed-point on {secure['agrees_with_reference']} of {secure['samples']}"
        computed.append(("secure", secure, agreement))
    shown = [name for name in SHOWN if name in document["float"]]
    rows = [(name, *(_cell(metric, values) for metric in shown), said) for name, values, said in computed]
    output.table(("computation", *(SHOWN[metric][0] for metric in shown), "agreement"), rows)
    if task.kind == "labels":
        _show_labels(computed, output)
    output.say(f"{counted(samples, 'sample')}, {counted(fixed['overflows'], 'overflow')}")
    output.costs(predictions)


def _show_labels(computed: list[tuple[str, dict[str, Any], str]], output: Output) -> None:
    """A row for each label: its metrics in every computation."""
    columns = [(name, metric) for name, _, _ in computed for metric in ("accuracy", "auc")]
    labels = zip(*(values["labels"] for _, values, _ in computed), strict=True)
    rows = [
        (
            label[0]["class_name"] or label[0]["label"],
            *(_cell(metric, measured) for measured in label for metric in ("accuracy", "auc")),
        )
        for label in labels
    ]
    output.table(("label", *(f"{name} {SHOWN[metric][0]}" for name, metric in columns)), rows)


def _cell(name: str, values: dict[str, Any]) -> str | None:
    value = values.get(name)
    return None if value is None else _text(name, value)


def _text(name: str, value: float) -> str:
    return f"{value:.2%}" if SHOWN[name][1] else f"{value:.4g}"
