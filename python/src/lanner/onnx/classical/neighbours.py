"""Votes of the nearest neighbours: who is as near as the last of them votes, and nobody is asked who that is.

A converter writes which rows are the nearest, looks their labels up, and counts each class. A place among all rows is
dear to compute in private; the middle between the distances of the last neighbour and the next row is one number. Rows
that are exactly as far away as the last neighbour vote, too, where the converter's count stops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from lanner.onnx.classical.choices import Scores
from lanner.onnx.classical.edit import ML, Edit, attributes, axes_of, is_of
from lanner.onnx.opaque import InferredShapes


def count_neighbours(edit: Edit) -> Sequence[str]:
    """Count votes by comparing every row's distance with that of the last neighbour.

    Returns:
        The tensors of the votes, class by class, which have these names in the file, too.
    """
    if not any(is_of(node, ("TopK",)) for node in edit.proto.graph.node):
        return ()
    votes: list[str] = []
    shapes = InferredShapes(edit.proto).shapes
    voters: dict[str, str] = {}

    def counted(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
        found = _votes(edit, node)
        if found is None:
            return None
        nearest, members = found
        made = list[onnx.NodeProto]()
        if nearest.output[1] not in voters:
            made, voters[nearest.output[1]] = _voters(edit, nearest, shapes)
        # Sums, unlike layers, keep whole numbers whole, so that classes tie where they should.
        rows, own = edit.hold(np.flatnonzero(members), f"{node.output[0]}_members"), edit.fresh(f"{node.output[0]}_own")
        gathered = helper.make_node("Gather", [voters[nearest.output[1]], rows], [own], name=own, axis=1)
        votes.append(node.output[0])
        return [*made, gathered, edit.sum_along(own, node.output[0], 1, keepdims=1)]

    edit.each(counted)
    return votes


def _votes(edit: Edit, node: onnx.NodeProto) -> tuple[onnx.NodeProto, NDArray[np.bool_]] | None:
    """What picks the neighbours that a node counts the votes of, and which rows are of the class that it counts."""
    if not is_of(node, ("ReduceSum",)) or axes_of(edit, node) != [1] or attributes(node).get("keepdims", 1) != 1:
        return None
    equal = edit.maker(edit.behind_views(node.input[0]), "Equal")
    looked_up = (
        None if equal is None else edit.maker(edit.behind_views(equal.input[0]), "ArrayFeatureExtractor", domain=ML)
    )
    if equal is None or looked_up is None:
        return None
    wanted, labels = edit.number(equal.input[1]), edit.constant(looked_up.input[0])
    places = edit.behind_views(looked_up.input[1])
    nearest = edit.maker(places, "TopK")
    if wanted is None or labels is None or nearest is None or nearest.output[1] != places:
        return None
    members, count = labels.ravel() == wanted, edit.number(nearest.input[1])
    along = attributes(nearest).get("axis", -1) in (1, -1)
    return (nearest, members) if along and members.any() and count is not None and count < len(members) else None


def _voters(
    edit: Edit, nearest: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]
) -> tuple[list[onnx.NodeProto], str]:
    """Nodes that give a one for each row that votes, shape (samples, rows), and the name of these."""
    count = int(edit.number(nearest.input[1]) or 0)
    scores = Scores(edit, shapes)
    near = scores.plain(nearest.input[0])
    if not attributes(nearest).get("largest", 1):
        near = scores.negated(near)
    name = nearest.name or nearest.output[1]
    names = (edit.fresh(f"{name}_{each}") for each in ("kept", "whose", "ends", "both", "twice", "reached", "votes"))
    kept, whose, ends, both, twice, reached, votes = names
    more = edit.hold(np.array([count + 1], np.int64), f"{name}_more")
    places = edit.hold(np.array([count - 1, count], np.int64), f"{name}_places")
    made = [
        helper.make_node("TopK", [near, more], [kept, whose], name=kept, axis=1),
        helper.make_node("Gather", [kept, places], [ends], name=ends, axis=1),
        edit.sum_along(ends, both, 1, keepdims=1),
        helper.make_node("Add", [near, near], [twice], name=twice),
        helper.make_node("GreaterOrEqual", [twice, both], [reached], name=reached),
        helper.make_node("Cast", [reached], [votes], name=votes, to=onnx.TensorProto.FLOAT),
    ]
    return [*scores.nodes, *made], votes
