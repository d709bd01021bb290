"""Makes a linear classifier's scores those that a softmax follows.

onnxruntime applies a classifier's ``post_transform`` in the node itself. Here the scores alone are computed, so the
attribute is taken off. Of two classes with opposite scores ``-s`` and ``s``, whose probabilities are their sigmoids,
the scores are halved: the softmax of ``-s/2`` and ``s/2`` is the sigmoid of ``s``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from lanner.heads import Ending, Head
from lanner.onnx.ending import End
from lanner.onnx.node import Node


def bare_classifier(end: End) -> End:
    """The end whose linear classifier, if it has one, gives bare scores; the node is changed in its file."""
    node = end.operators[0] if end.operators else None
    if node is None or node.op_type != "LinearClassifier":
        return end
    ending = end.head.ending
    if ending is Ending.ONE_AGAINST_REST and _halve_opposites(node):
        ending = Ending.SOFTMAX
    _set_attribute(node, "post_transform", "NONE")
    return replace(end, head=Head(ending, end.head.classes), operators=end.operators[1:])


def _halve_opposites(node: onnx.NodeProto) -> bool:
    """Halve the scores of two classes that are opposite, or that one score stands for; whether they are so."""
    view = Node(node, [])
    intercepts = np.array(view.attr("intercepts", [0.0]), np.float64)
    rows = np.array(view.attr("coefficients", [0.0]), np.float64).reshape(len(intercepts), -1)
    if len(intercepts) == 1:
        rows, intercepts = np.concatenate([-rows, rows]), np.concatenate([-intercepts, intercepts])
    if len(intercepts) != 2 or not (np.array_equal(rows[0], -rows[1]) and intercepts[0] == -intercepts[1]):
        return False
    _set_attribute(node, "coefficients", (rows / 2).ravel().tolist())
    _set_attribute(node, "intercepts", (intercepts / 2).tolist())
    return True


def _set_attribute(node: onnx.NodeProto, name: str, value: object) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])
