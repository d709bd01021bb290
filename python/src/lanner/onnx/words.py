"""Inputs of words: a file whose inputs are the columns of a data frame becomes one that reads a row of numbers.

A private value is a number. Which number a word is the client must know, so the model's owner publishes the words:
the categories of an encoder are those of a table's column, and what the model makes of each stays secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.columns import StatedColumn
from lanner.errors import MisuseError, UnsupportedOpError
from lanner.onnx.node import Node
from lanner.stated_columns import MOST_BYTES, MOST_CATEGORIES

ML = "ai.onnx.ml"


@dataclass(frozen=True, slots=True)
class Words:
    """What a file of words reads once it reads a row of numbers.

    Attributes:
        row: The name of the input that is the row; the columns' tensors have the names of the inputs that they were.
        columns: Its columns.
    """

    row: str
    columns: tuple[StatedColumn, ...]

    @property
    def worded(self) -> tuple[StatedColumn, ...]:
        """The columns of words."""
        return tuple(column for column in self.columns if column.categories is not None)


def reads_words(graph: onnx.GraphProto) -> bool:
    """Whether an input of a graph is of words."""
    return bool(word_inputs(graph))


def word_inputs(graph: onnx.GraphProto) -> list[str]:
    """The names of a graph's inputs of words."""
    return [entry.name for entry in graph.input if entry.type.tensor_type.elem_type == onnx.TensorProto.STRING]


def words_in(source: object, fixed: Collection[str] = ()) -> Words | None:
    """What the columns of a file of words are; None of other models.

    Args:
        source: A path or an ``onnx.ModelProto``, or something else.
        fixed: The names of inputs that the owner makes constants.

    Raises:
        UnsupportedOpError: As `words_of`.
    """
    if isinstance(source, str | Path):
        if not Path(source).is_file():
            return None
        try:
            source = onnx.load_model(source, load_external_data=False)
        except (OSError, DecodeError):
            # Whoever imports it says why it cannot be read.
            return None
    if not isinstance(source, onnx.ModelProto) or not reads_words(source.graph):
        return None
    return words_of(source.graph, fixed)


def words_of(graph: onnx.GraphProto, fixed: Collection[str] = ()) -> Words:
    """What the columns of a file of words are, which is left as it is; `fixed` is as of `words_in`.

    Raises:
        UnsupportedOpError: If an input is no column, or words are read by something else than encoders.
    """
    entries = [entry for entry in _columns(graph) if entry.name not in fixed]
    taken = {each.name for each in (*graph.input, *graph.initializer)} | {
        name for node in graph.node for name in node.output
    }
    row = "row"
    while row in taken:
        row += "_"
    return Words(row, tuple(_column(graph, entry) for entry in entries))


def number_words(graph: onnx.GraphProto) -> Words:
    """Make a file of words read a row of numbers, in place.

    Raises:
        UnsupportedOpError: As `words_of`.
    """
    words = words_of(graph)
    nodes = []
    for place, (entry, column) in enumerate(zip(_columns(graph), words.columns, strict=True)):
        index, found = f"{words.row}_{place}", f"{words.row}_{place}_float"
        graph.initializer.append(numpy_helper.from_array(np.array([place], np.int64), index))
        worded = column.categories is not None
        kind = onnx.TensorProto.INT64 if worded else entry.type.tensor_type.elem_type
        nodes.append(helper.make_node("Gather", [words.row, index], [found], name=f"{entry.name}_column", axis=1))
        nodes.append(helper.make_node("Cast", [found], [entry.name], name=f"{entry.name}_number", to=kind))
        for node in _encoders(graph, entry.name) if worded else ():
            _number(node, column.categories or ())
    _replace_inputs(graph, words)
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    return words


def filled_row(graph: onnx.GraphProto) -> onnx.ValueInfoProto | None:
    """The one input that is a row of numbers of which an Imputer fills in missing ones; None of other files.

    Trees answer for missing numbers themselves.
    """
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in constants]
    if len(inputs) != 1 or any(node.op_type.startswith("TreeEnsemble") for node in graph.node):
        return None
    row = inputs[0].type.tensor_type
    sides = row.shape.dim
    fills = any(node.op_type == "Imputer" and node.domain == ML and _fills_missing(node) for node in graph.node)
    is_row = row.elem_type == onnx.TensorProto.FLOAT and len(sides) == 2 and sides[1].dim_value > 0
    return inputs[0] if fills and is_row else None


def _fills_missing(node: onnx.NodeProto) -> bool:
    replaced = [attribute.f for attribute in node.attribute if attribute.name == "replaced_value_float"]
    return bool(np.isnan(replaced).any())


def split_row(graph: onnx.GraphProto, row: onnx.ValueInfoProto, stated: Sequence[StatedColumn]) -> Words:
    """Let whoever reads a row of numbers read its columns one by one, in place.

    Args:
        graph: The file's graph.
        row: Its only input, of shape (n, columns).
        stated: What is said of the columns; of another number of them nothing is.

    Raises:
        MisuseError: If a column has the name of an output.
    """
    width = row.type.tensor_type.shape.dim[1].dim_value
    taken = (
        {name for node in graph.node for name in node.output} | {each.name for each in graph.initializer} | {row.name}
    )
    columns = tuple(stated)
    if len(columns) != width:
        columns = tuple(StatedColumn(f"x{at + 1}") for at in range(width))
    if shared := {column.name for column in columns} & {output.name for output in graph.output}:
        what = f"column {min(shared)} has the name of an output of the model"
        raise MisuseError(what, where="calibration", fix="rename the column, or the output")
    names = {column.name for column in columns}

    def free(name: str) -> str:
        while name in taken | names:
            name += "_"
        return name

    # The columns keep their names, so that clients find them; a tensor of the same name gets another.
    renamed = {name: free(name) for name in taken & names}
    row.name = renamed.get(row.name, row.name)
    for tensor in graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    del graph.value_info[:]
    joined = free(f"{row.name}_columns")
    for node in graph.node:
        node.input[:] = [joined if name == row.name else name for name in node.input]
    nodes = []
    for at, column in enumerate(columns):
        index = f"{joined}_{at}"
        graph.initializer.append(numpy_helper.from_array(np.array([at], np.int64), index))
        nodes.append(helper.make_node("Gather", [row.name, index], [column.name], name=f"{index}_column", axis=1))
    nodes.append(helper.make_node("Concat", [column.name for column in columns], [joined], name=joined, axis=1))
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    return Words(row.name, columns)


def _columns(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are no constants and that a node reads: each is one column.

    Raises:
        UnsupportedOpError: Naming one that is not.
    """
    constants = {tensor.name for tensor in graph.initializer}
    read = {name for node in graph.node for name in node.input}
    entries = [entry for entry in graph.input if entry.name not in constants and entry.name in read]
    for entry in entries:
        sides = entry.type.tensor_type.shape.dim
        if len(sides) != 2 or sides[1].dim_value != 1:
            shown = ", ".join(side.dim_param or str(side.dim_value or "?") for side in sides)
            raise _unsupported(
                graph,
                entry,
                f"is of type {onnx.TensorProto.DataType.Name(entry.type.tensor_type.elem_type)} and shape ({shown}); "
                "where an input is of words, each must be one column, of shape (n, 1)",
                "export the pipeline from a data frame, or encode the words before the prediction",
            )
    return entries


def _readers(graph: onnx.GraphProto, name: str) -> Iterator[onnx.NodeProto]:
    return (node for node in graph.node if name in node.input)


def _encoders(graph: onnx.GraphProto, name: str) -> Iterator[onnx.NodeProto]:
    """The nodes that make something of a column, behind those that hand it on."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in _readers(graph, name):
        picked = constants.get(node.input[1]) if node.op_type == "Gather" and len(node.input) == 2 else None
        whole = picked is not None and numpy_helper.to_array(picked).ravel().tolist() in ([0], [-1])
        if node.op_type == "Identity" or whole:
            yield from _encoders(graph, node.output[0])
        else:
            yield node


def _column(graph: onnx.GraphProto, entry: onnx.ValueInfoProto) -> StatedColumn:
    """What an input is as a column: of words the categories of the encoders that read them."""
    if entry.type.tensor_type.elem_type != onnx.TensorProto.STRING:
        return StatedColumn(entry.name)
    categories: dict[str, None] = {}
    others = False
    for node in _encoders(graph, entry.name):
        listed = _words(node)
        if listed is None:
            raise Node(node, []).unsupported(
                f"input {entry.name}",
                "is of words, which OneHotEncoder and LabelEncoder alone may read",
                "encode the words by a OneHotEncoder or an OrdinalEncoder in the pipeline, or before the prediction",
            )
        known, takes_others = listed
        categories.update(dict.fromkeys(known))
        others = others or takes_others
    fits = all(word.strip() and len(word.encode()) <= MOST_BYTES for word in categories)
    if not 1 <= len(categories) + others <= MOST_CATEGORIES or not fits or not categories:
        raise _unsupported(
            graph,
            entry,
            f"has {len(categories)} categories; 1 to {MOST_CATEGORIES} are needed, each of 1 to {MOST_BYTES} bytes",
            "encode the words before the prediction",
        )
    return StatedColumn(entry.name, categories=tuple(categories), others=others)


def _words(node: onnx.NodeProto) -> tuple[list[str], bool] | None:
    """The words that an encoder knows, and whether it accepts others; None of other operators."""
    if node.domain != ML:
        return None
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "OneHotEncoder" and given.get("cats_strings"):
        return [each.decode() for each in given["cats_strings"]], bool(given.get("zeros", 1))
    numbers = given.get("values_int64s") or given.get("values_floats")
    if node.op_type == "LabelEncoder" and given.get("keys_strings") and numbers:
        return [each.decode() for each in given["keys_strings"]], bool({"default_int64", "default_float"} & set(given))
    return None


def _number(node: onnx.NodeProto, categories: Sequence[str]) -> None:
    """Let an encoder read the places of words among categories."""
    key = "cats_strings" if node.op_type == "OneHotEncoder" else "keys_strings"
    for attribute in node.attribute:
        if attribute.name == key:
            places = [categories.index(each.decode()) for each in attribute.strings]
            attribute.CopyFrom(helper.make_attribute(key.replace("strings", "int64s"), places))


def encoded(node: Node, places: NDArray[np.generic]) -> NDArray[np.generic] | None:
    """What an encoder makes of words' places, shape (n,): numbers (n,), or of one for each category (n, categories).

    None of other operators, and of encoders of something else.
    """
    if node.qualified_operator == f"{ML}.OneHotEncoder":
        known = np.array(node.attr("cats_int64s", list[int]()), np.int64)
        return (places[:, np.newaxis] == known).astype(np.float32) if len(known) else None
    if node.qualified_operator != f"{ML}.LabelEncoder":
        return None
    keys = node.attr("keys_int64s", list[int]())
    for values, default, kind in (
        ("values_int64s", "default_int64", np.int64),
        ("values_floats", "default_float", np.float32),
    ):
        given: list[float] = node.attr(values, list[float]())
        if keys and len(given) == len(keys):
            # As ONNX has it, of no default that is given.
            other = float(node.attr(default, -1 if kind is np.int64 else 0.0))
            made = dict(zip(keys, given, strict=True))
            return np.array([made.get(int(place), other) for place in places], kind)
    return None


def keeps_places(proto: onnx.NodeProto, choices: int) -> bool:
    """Whether a node is an encoder of words whose numbers are their places."""
    places = np.arange(choices)
    made = encoded(Node(proto, []), places)
    return made is not None and np.array_equal(made, places)


def encoders(graph: onnx.GraphProto, name: str) -> list[onnx.NodeProto]:
    """The encoders that read a column of words."""
    return list(_encoders(graph, name))


def column_sources(graph: onnx.GraphProto, name: str) -> list[str]:
    """The tensors that a column of the row is cast from."""
    return [node.input[0] for node in graph.node if node.op_type == "Cast" and name in node.output]


def _replace_inputs(graph: onnx.GraphProto, words: Words) -> None:
    """Give a graph the row as its one input that is no constant."""
    constants = {tensor.name for tensor in graph.initializer}
    kept = [entry for entry in graph.input if entry.name in constants]
    shape: list[str | int | None] = ["samples", len(words.columns)]
    row = helper.make_tensor_value_info(words.row, onnx.TensorProto.FLOAT, shape)
    del graph.input[:]
    graph.input.extend([row, *kept])


def _unsupported(graph: onnx.GraphProto, entry: onnx.ValueInfoProto, what: str, fix: str) -> UnsupportedOpError:
    reader = next(_readers(graph, entry.name), onnx.NodeProto(op_type="the graph"))
    return Node(reader, []).unsupported(f"input {entry.name}", what, fix)
