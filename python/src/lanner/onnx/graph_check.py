"""Asks the native compiler, before any sample is run, what of a float graph it would refuse."""

from __future__ import annotations

import json

from lanner import _native
from lanner.errors import ModelError, Refusal, UnsupportedOpError, spelled
from lanner.onnx.builder import FloatGraph
from lanner.onnx.refusals import Refusals


def check_graph(graph: FloatGraph, options: str) -> Refusals:
    """The reasons why a graph cannot be compiled, as far as its operators and shapes tell.

    Args:
        graph: The graph.
        options: The compile options as the JSON text that the native compiler takes.

    Raises:
        NativeError: If the graph is damaged or has no layer.
    """
    found = json.loads(_native.refusals(graph.document, graph.tensors, options))
    refusals = Refusals()
    for entry in found:
        kind = UnsupportedOpError if entry["kind"] == UnsupportedOpError.kind else ModelError
        what, where, fix = spelled(entry["what"]), entry["where"], spelled(entry["fix"])
        refusals.note(kind(what, where=where, fix=fix, nodes=[Refusal(what, where, node=where, fix=fix)]))
    return refusals
