"""What ``lanner inspect`` shows of an ONNX file: what it is lowered to, or every reason why it cannot be compiled."""

from __future__ import annotations

import itertools
import json
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lanner.cli.arguments import ACCEPTING, LimitKeywords
from lanner.cli.output import Output
from lanner.cli.report import columns_of
from lanner.errors import ModelError, Refusal, native_errors
from lanner.extras import require
from lanner.named import NamedInput
from lanner.options import CompileOptions
from lanner.texts import tokens_among
from lanner.wording import counted

if TYPE_CHECKING:
    from lanner.onnx import ImportedModel


def inspect_onnx(options: Namespace, limits: LimitKeywords, output: Output) -> int:
    """Show an ONNX file; the exit code is 0 if it can be compiled as far as is known without samples, 3 if not.

    `options` are those of `add_accepting_options`, and the file.

    Raises:
        MisuseError: If the package onnx is not installed, or the file has no output of that name.
        ModelError: If the file cannot be read.
    """
    require("onnx", "inspecting an ONNX model")
    from lanner.onnx import Frame, survey_file
    from lanner.onnx.published import read_published

    path = options.model
    frame = Frame.of(
        options.shape,
        options.fix,
        options.output_name,
        options.columns,
        publishes_words=True,
    )
    frame = replace(frame, published=read_published(options.public_embeddings))
    # Any network may reveal its scores.
    policy = options.output or ("value" if len(frame.outputs) > 1 else _POLICY)
    survey = survey_file(path, policy, frame)
    reasons = survey.reasons if survey.model is None else _native_reasons(survey.model, policy, limits)
    share = survey.share
    shown = {} if survey.model is None else _show_model(survey.model, output)
    if reasons:
        rows = [(reason.operator, reason.node, reason.attribute, reason.what, reason.fix) for reason in reasons]
        output.table(("operator", "node", "attribute", "reason", "what to do"), rows)
        told = (
            "lanner knows all operators, but not with these settings or sizes"
            if survey.model is not None
            else str(share)
        )
        output.say(f"{path.name} cannot be compiled: {told}")
    else:
        output.say(f"{share}; compile the model to see ranges, scales and what using it reveals")
        shown["next"] = _next_command(options, survey.model)
        output.say(f"next: {shown['next']}")
    refusals = [reason.document() for reason in reasons]
    output.document({"compiles": not reasons, **shown, "share": share.document(), "refusals": refusals})
    return ModelError.exit_code if reasons else 0


def _next_command(options: Namespace, model: ImportedModel | None) -> str:
    """The command that compiles a file with typical samples, with the options that it was looked at with."""
    from lanner.onnx.words import words_in

    named = () if model is None else model.named
    samples = "typical.npy"
    if len(named) > 1:
        samples = "typical.npz"
    elif named and named[0].columns is not None:
        samples = "typical.csv"
    length = _tokens_of_a_text(named)
    if length is not None:
        samples = "typical.txt"
    words = ["lanner", "compile", str(options.model), "-o", str(options.model.with_suffix(".lanner").name)]
    words += ["--calibration", samples]
    if length is not None:
        words += ["--text", f"tokenizer.json,length={length}"]
    if words_in(options.model) is not None:
        words.append("--public-preprocessing")
    for name in ACCEPTING:
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [] if given is None else [given]:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [_spelled(value)])]
    return shlex.join(words)


def _tokens_of_a_text(named: Sequence[NamedInput]) -> int | None:
    """How many tokens a model reads that looks like one of texts: its inputs are whole numbers, and named like that."""
    tokens = tokens_among([each.name for each in named])
    shape = next((each.shape for each in named if each.name == tokens), ())
    whole = all(each.embeddings is not None or each.datatype != "FP32" for each in named)
    return shape[0] if whole and len(shape) == 1 else None


def _spelled(value: object) -> str:
    """What was given, as a command line has it: a list of names with commas."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _native_reasons(model: ImportedModel, policy: str, limits: LimitKeywords) -> Sequence[Refusal]:
    """What fixed point does not have of a lowered model, or what of its sizes is beyond the limits."""
    from lanner.onnx import check_graph

    options = CompileOptions(name=model.name, output=policy, **limits)
    try:
        with native_errors(model.name):
            return check_graph(model.graph, options.document()).reasons
    except ModelError as error:
        return [Refusal(error.what, error.where, fix=error.fix)]


#: The output policy that a file is looked at for.
_POLICY = "logits"


def _show_model(model: ImportedModel, output: Output) -> dict[str, Any]:
    nodes: Sequence[Mapping[str, Any]] = json.loads(model.graph.document)["nodes"]
    parameters = sum(tensor.size for tensor in model.graph.tensors.values())
    for entry in model.entries:
        output.say(f"input {entry.named.name} {_described(entry.named)}")
    output.say(f"outputs {model.graph.output_shape}")
    output.table(("operator", "count"), sorted(model.operators.items()))
    rows = [(node["name"], _operator(node), _inputs(node), _attributes(node)) for node in nodes]
    output.table(("node", "lowered to", "inputs", "attributes"), rows)
    output.say(f"{parameters} parameters")
    return {
        "input": {"name": model.input_name, "shape": list(model.input_shape)},
        "inputs": [entry.named.document() for entry in model.entries],
        "output": {"shape": list(model.graph.output_shape)},
        "operators": dict(sorted(model.operators.items())),
        "parameters": parameters,
        "nodes": [
            {"name": row[0], "operator": row[1], "inputs": node["inputs"]}
            for row, node in zip(rows, nodes, strict=True)
        ],
    }


def _described(named: NamedInput) -> str:
    """The shape of one sample's, and what its elements are where they are no floats, or columns of a table."""
    if named.columns is not None:
        return f"{named.shape}, {columns_of(named.columns)}"
    if named.embeddings is not None:
        rows, width = named.embeddings.rows, named.embeddings.width
        published = f"a public table of {rows} x {width} = {counted(rows * width, 'weight')}"
        return f"{named.shape}, whole numbers from 0 to {rows - 1}, looked up by the client in {published}"
    if named.choices is not None:
        return f"{named.shape}, whole numbers from 0 to {named.choices - 1}"
    return f"{named.shape}" if named.datatype == "FP32" else f"{named.shape}, whole numbers"


def _operator(node: Mapping[str, Any]) -> str:
    op = node["op"]
    return op if isinstance(op, str) else next(iter(op))


def _inputs(node: Mapping[str, Any]) -> str:
    """The values that a node reads; one that is repeated once, with how often."""
    runs = [(name, len(list(run))) for name, run in itertools.groupby(node["inputs"])]
    return ", ".join(name if times == 1 else f"{name} ({times} times)" for name, times in runs)


def _attributes(node: Mapping[str, Any]) -> str:
    op = node["op"]
    if isinstance(op, str):
        return ""
    members = next(iter(op.values()))
    if isinstance(within := members.get("Within"), dict):
        ends = {name: within[name] for name in ("low", "high") if within[name] is not None}
        return " ".join([*within["of"], *(f"{name}={end:g}" for name, end in ends.items())])
    return " ".join(f"{name}={value}" for name, value in members.items() if not isinstance(value, str | None)).replace(
        " ,", ","
    )
