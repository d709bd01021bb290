"""A file's inputs: which of them count, what their elements are, and how one vector holds them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.columns import Coding, Column, StatedColumn
from lanner.columns import parts_of as column_parts
from lanner.errors import MisuseError, ModelError, UnsupportedOpError, option_named, spelled
from lanner.named import NamedInput, factor_for, parts_of
from lanner.onnx.affine import Affine
from lanner.onnx.bodies import names_read
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.comparison import TRUTHS
from lanner.onnx.contents import constant_nodes
from lanner.onnx.frame import Frame, open_sizes
from lanner.onnx.lookup import Embedded, Lookup, of_input
from lanner.onnx.node import Node
from lanner.onnx.number_types import INTEGERS, is_mask
from lanner.onnx.opaque import InferredShapes
from lanner.onnx.trees.table import Table, leads_to_trees, table_of
from lanner.onnx.whole import ARITHMETIC, OF_NUMBERS
from lanner.onnx.words import column_sources, encoders, keeps_places
from lanner.stated_columns import check_stated

#: The name of the vector that several inputs are parts of.
_VECTOR = "inputs"

_DATATYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "FP32",
    onnx.TensorProto.BOOL: "BOOL",
    **{kind: onnx.TensorProto.DataType.Name(kind) for kind in INTEGERS},
}

#: Operators of integers or truth values that ask which of two an element is.
_QUESTIONS = frozenset(
    ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And", "Or", "Xor", "Where", "Sign")
)

#: What asks which of two numbers is larger.
_ORDERS = frozenset(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"))

#: Operators behind which an element is still a function of the one in front.
_MOVERS = frozenset(("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Slice", "Transpose"))
_CARRIERS = _QUESTIONS | _MOVERS | {"Add", "Sub", "Mul", "Max", "Min", "Clip", "Mod"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An input of a file.

    Attributes:
        named: What its elements are.
        batch: Which axis the samples are along.
        batched: Whether that axis is symbolic.
        rows: Of a table, the owner's samples of it.
    """

    named: NamedInput
    batch: int
    batched: bool
    rows: NDArray[np.float32] | None = None

    def with_batch(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Samples that come first, as the file has them."""
        return np.moveaxis(values, 0, self.batch)


def free_inputs(
    graph: onnx.GraphProto, constants: Iterable[str], needed: Iterable[onnx.NodeProto], scores: Iterable[str]
) -> list[str]:
    """The names of the inputs that are no constants and that a node reads, or the end, in the file's order."""
    held, read = set(constants), set(scores)
    for node in needed:
        read.update(names_read(node))
    return [entry.name for entry in graph.input if entry.name not in held and entry.name in read]


def read_entry(info: onnx.ValueInfoProto, proto: onnx.ModelProto, frame: Frame, alone: bool) -> Entry:
    """What an input is.

    Args:
        info: The file's word of it.
        proto: The model.
        frame: What the owner says of it.
        alone: Whether it is the only one.

    Raises:
        UnsupportedOpError: If it is of text, or no tensor.
        ModelError: If a size is open.
        MisuseError: If the owner names more or fewer columns than a table has.
    """
    kind = info.type.tensor_type.elem_type
    if info.type.WhichOneof("value") != "tensor_type" or kind not in _DATATYPES:
        raise _of_another_type(info, proto.graph)
    if leads_to_trees(info.name, proto.graph):
        shape, batch, batched = sample_shape(info, proto.graph, frame, alone)
        if len(shape) == 1:
            rows = _rows(info.name, shape[0], frame)
            stated = _stated(info.name, shape[0], frame)
            columns = tuple(Column.of(rows[:, index], stated[index]) for index in range(shape[0]))
            return Entry(NamedInput(info.name, _DATATYPES[kind], shape, columns=columns), batch, batched, rows)
    if info.name == frame.row:
        return _worded(info, proto, frame)
    # The samples of an only input may be an array without a name.
    largest = frame.largest.get(info.name, frame.largest.get("") if alone else None)
    choices = None
    if kind != onnx.TensorProto.FLOAT:
        given = frame.arrays.get(info.name, frame.arrays.get("") if alone else None)
        of_truth = kind == onnx.TensorProto.BOOL
        if of_truth or given is None or not given.size or given.min() >= 0:
            choices = _choices(info.name, proto, largest or 0.0, of_truth)
        if choices is None:
            _check_whole(info, proto.graph)
    looked_up = choices is not None and choices > 2
    shape, batch, batched = sample_shape(info, proto.graph, frame, alone, looked_up=looked_up)
    named = NamedInput(info.name, _DATATYPES[kind], shape, choices)
    # A range that the owner states is that of every number as it is given.
    if named.choices is None and not alone and not frame.ranged:
        named = replace(named, factor=factor_for(1.0 if largest is None else largest))
    return Entry(named, batch, batched)


def _worded(info: onnx.ValueInfoProto, proto: onnx.ModelProto, frame: Frame) -> Entry:
    """A row of numbers and of words."""
    shape, batch, batched = sample_shape(info, proto.graph, frame, alone=True)
    stated = [column for column in _stated(info.name, shape[0], frame) if column is not None]

    def coding(column: StatedColumn) -> Coding:
        readers = encoders(proto.graph, column.name)
        is_number = column.categories is None or all(keeps_places(node, column.choices) for node in readers)
        return Coding.NUMBER if is_number else Coding.CHOICE

    rows = _rows(info.name, shape[0], frame)

    def lacks(index: int) -> bool:
        return stated[index].missing or bool(np.isnan(rows[:, index]).any())

    columns = tuple(Column.plain(each, coding(each), missing=lacks(index)) for index, each in enumerate(stated))
    datatype = _DATATYPES[info.type.tensor_type.elem_type]
    return Entry(NamedInput(info.name, datatype, shape, columns=columns), batch, batched)


def check_columns(entries: Sequence[Entry], frame: Frame) -> None:
    """Check that what an owner says of columns is said of one table: one that trees read, or the only row of numbers.

    Raises:
        MisuseError: If there is no table, or more than one; or more is said than names of columns that no tree reads.
    """
    tables = [entry.named.name for entry in entries if entry.named.columns is not None]
    if not frame.needs_table or len(tables) == 1:
        return
    (only, *others) = (entry.named for entry in entries)
    if tables or others or only.choices is not None or len(only.shape) != 1:
        found = f"the tables {', '.join(tables)}" if tables else "no input that is a row of numbers"
        what = f"columns are named, and the model has {found}"
        raise MisuseError(what, where=option_named("columns"), fix="leave it out")
    _check_count(only.name, only.shape[0], frame)
    if any(column.missing or column.categories is not None for column in frame.columns):
        what = "only columns that trees read may lack numbers or have categories"
        raise MisuseError(what, where=option_named("columns"), fix="give the names alone")


def _stated(name: str, count: int, frame: Frame) -> Sequence[StatedColumn | None]:
    """What the owner says of each of so many columns; a data frame says it of those that it has."""
    if not frame.needs_table and len(frame.columns) != count:
        return [None] * count
    _check_count(name, count, frame)
    return check_stated(frame.columns, option_named("columns") if frame.needs_table else "calibration")


def _check_count(name: str, count: int, frame: Frame) -> None:
    if len(frame.columns) != count:
        raise MisuseError(
            f"{len(frame.columns)} columns are named, and input {name} has {count}",
            where=option_named("columns"),
            fix="name every column, in the order of the model's input",
        )


def _rows(name: str, count: int, frame: Frame) -> NDArray[np.float32]:
    """The owner's samples of a table; where there are none, or of other columns, a row of zeros."""
    rows = frame.arrays.get(name, frame.arrays.get("", frame.arrays.get("x")))
    if rows is None or rows.ndim == 0 or rows.shape[-1] != count:
        return np.zeros((1, count), np.float32)
    return rows.reshape(-1, count)


def sample_shape(
    info: onnx.ValueInfoProto, graph: onnx.GraphProto, frame: Frame, alone: bool, *, looked_up: bool = False
) -> tuple[tuple[int, ...], int, bool]:
    """The shape of one sample, the axis of samples, and whether that is symbolic.

    A sample may be one index that is looked up, as of a user or a thing, and is then of shape ().

    Raises:
        ModelError: If a size is open, or there is no axis of samples.
    """
    sides = list(info.type.tensor_type.shape.dim)
    sizes = [side.dim_value if side.HasField("dim_value") and side.dim_value > 0 else None for side in sides]
    batch = _batch_axis(info, sizes, graph, alone)
    sample = [size for axis, size in enumerate(sizes) if axis != batch]
    one_index = looked_up and sizes == [None]
    if batch is not None and (sample or one_index) and None not in sample:
        return tuple(size for size in sample if size is not None), batch, sizes[batch] is None
    shown = ", ".join(side.dim_param or str(side.dim_value or "?") for side in sides)
    if batch is not None and sample:
        what, fix = f"the input has shape ({shown})", f"give its sizes, as in {open_sizes(info, batch, frame.samples)}"
    elif len(sides) <= 1:
        what = f"the input has shape ({shown}), and nothing in it is a sample's"
        constant = spelled(f"⟦fix={info.name}=VALUE⟧")
        fix = f"make it a constant, as in {constant}, or export it with a batch axis first and one behind"
    else:
        what, fix = f"the input has shape ({shown})", "export it with a batch axis first, symbolic or 1"
        if not alone:
            fix += spelled(f", or make it a constant, as in ⟦fix={info.name}=F.npy⟧")
            if None not in sizes:
                one = "x".join(map(str, [1, *sizes[1:]]))
                fix = spelled(f"say what one sample is, as in ⟦shape={info.name}={one}⟧, or ") + fix
    raise ModelError(what, where=f"input {info.name}", fix=fix)


def _batch_axis(
    info: onnx.ValueInfoProto, sizes: Sequence[int | None], graph: onnx.GraphProto, alone: bool
) -> int | None:
    """The axis of samples: the first one, or of states of recurrent layers the one that has the batch's name, or 1."""
    if not sizes:
        return None
    sides = info.type.tensor_type.shape.dim
    batches = {
        entry.type.tensor_type.shape.dim[0].dim_param for entry in graph.input if entry.type.tensor_type.shape.dim
    } - {""}
    named = [axis for axis, side in enumerate(sides) if side.dim_param in batches]
    # A first side of 1 is that of the directions where the samples' name stands elsewhere.
    if sizes[0] is None or (sizes[0] == 1 and not named):
        return 0
    if alone and sizes[0] != 1:
        return None
    ones = [axis for axis, size in enumerate(sizes) if size == 1 or (size is None and axis == 1)]
    return next(iter([*named, *ones]), None)


def place(
    entries: Sequence[Entry], proto: onnx.ModelProto
) -> tuple[GraphBuilder, dict[str, Wire | Lookup | Table | Affine]]:
    """A graph whose input holds all of a file's, and what each is in it."""
    only = entries[0].named if len(entries) == 1 else None
    if only is not None:
        graph = GraphBuilder(only.name, only.coded_shape)
        parts = {only.name: graph.input}
    else:
        graph = GraphBuilder(_VECTOR, (sum(entry.named.size for entry in entries),))
        parts = {}
        for named, part in parts_of([entry.named for entry in entries]):
            graph.enter(named.name)
            whole = graph.slice(graph.input, (range(part.start, part.stop),))
            coded = graph.reshape(whole, named.coded_shape)
            parts[named.name] = graph.scale(coded, 1.0 / named.factor)
    values: dict[str, Wire | Lookup | Table | Affine] = {
        entry.named.name: _value(graph, entry, parts[entry.named.name]) for entry in entries
    }
    if only is not None and only.columns is not None and entries[0].rows is None:
        return graph, values | _cells(graph, entries[0], proto)
    places = parts_of([entry.named for entry in entries])
    tables = {
        named.name: table_of(graph.input, part.start, named.columns, entry.rows)
        for entry, (named, part) in zip(entries, places, strict=True)
        if named.columns is not None and entry.rows is not None
    }
    return graph, values | tables


def _cells(graph: GraphBuilder, entry: Entry, proto: onnx.ModelProto) -> dict[str, Affine]:
    """The tensors that hold a column of a row of numbers and words."""
    columns = entry.named.columns or ()
    row = graph.reshape(graph.input, (graph.input.size,))
    values: dict[str, Affine] = {}
    for column, part in zip(columns, column_parts(columns), strict=True):
        name = column.name or ""
        # Encoders whose numbers are the categories' places leave them.
        is_place = column.categories is not None and column.coding is Coding.NUMBER
        kept = [node.output[0] for node in encoders(proto.graph, name)] if is_place else []
        # Whoever picks the column from the row is not read any more.
        names = (name, *kept, *column_sources(proto.graph, name))
        values |= dict.fromkeys(names, Affine.of_column(row, column, part, entry.batch))
    return values


def is_plain(entries: Sequence[Entry]) -> bool:
    """Whether the network's input is the file's only one as it is."""
    named = entries[0].named
    return len(entries) == 1 and named.choices is None and named.datatype == "FP32" and named.columns is None


def _value(graph: GraphBuilder, entry: Entry, part: Wire) -> Wire | Lookup:
    named, source = entry.named, replace(part, batch=entry.batch)
    if named.choices is None:
        return source
    kind = helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, named.datatype))
    if named.embeddings is not None and named.embeddings.table is not None:
        return Embedded(source, named.shape, np.arange(named.choices).astype(kind), named.embeddings.table.rows)
    return of_input(graph, source, named.shape, named.choices, kind)


def _choices(name: str, proto: onnx.ModelProto, largest: float, of_truth: bool) -> int | None:
    """How many values an element may have, None where it is a number.

    They are the rows of the smallest table that it is looked up in. Where it is compared, or what is computed of it is
    looked up, they reach to the largest number that it is compared with, to the largest of the samples and to the rows
    of that table, and are two at least. `largest` is the largest of the samples.
    """
    if of_truth or (largest <= 1 and is_mask(name, proto.graph)):
        return 2
    constants = {tensor.name: tensor for tensor in proto.graph.initializer} | constant_nodes(proto.graph)
    rows, asked, questions = set[int](), set[int](), set[bool]()
    for node, read, same in _readers(name, proto.graph):
        if _orders(node, constants):
            # Numbers, of which each place has a threshold of its own.
            return None
        if same and node.op_type not in _MOVERS:
            questions.add(node.op_type in _ORDERS and any(each in constants for each in node.input))
        found = rows if same else asked
        if node.op_type == "Gather":
            found |= _rows_of_table(node, proto)
        elif node.op_type == "OneHot" and node.input[0] == read:
            found |= _depth(node, constants)
        elif node.op_type in _QUESTIONS or _casts_to_truth(node):
            asked |= {2, *_compared(node, constants)}
    if rows or not asked:
        return min(rows, default=None)
    if questions == {True}:
        # One comparison costs less than a row for each choice.
        return None
    return max(*asked, int(largest) + 1)


def _readers(name: str, graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, str, bool]]:
    """The nodes that read an input's elements or a function of each, what they read, and whether it is the elements."""
    seen, pending = {name}, [(name, True)]
    while pending:
        read, same = pending.pop()
        for node in graph.node:
            if read not in node.input:
                continue
            yield node, read, same
            if node.op_type in _CARRIERS and not _casts_to_float(node):
                kept = same and node.op_type in _MOVERS and not _casts_to_truth(node)
                pending += [(output, kept) for output in node.output if output not in seen]
                seen.update(node.output)


def _orders(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether a node asks which elements are above or below several constants."""
    sizes = [int(np.prod(held[name].dims)) for name in node.input if name in held]
    return node.op_type in _ORDERS and max(sizes, default=1) > 1


def _rows_of_table(node: onnx.NodeProto, proto: onnx.ModelProto) -> set[int]:
    """The rows of the constant that a Gather picks from."""
    table = InferredShapes(proto).shapes.get(node.input[0], ())
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
    return {table[axis]} if table and node.input[0] not in _depending(proto.graph) else set()


def _compared(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> set[int]:
    """One more than the largest number that a node compares with."""
    if node.op_type not in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        return set()
    values = [numpy_helper.to_array(held[name]) for name in node.input if name in held]
    return {int(value.max()) + 1 for value in values if value.size and 0 <= value.max() < _MOST_CHOICES}


#: More choices than any vocabulary has.
_MOST_CHOICES = 1 << 20


def _check_whole(info: onnx.ValueInfoProto, graph: onnx.GraphProto) -> None:
    """Check that integers are computed with as numbers are, up to where they are cast to floats.

    What casts them to integers that hold them all changes none of them, and hands them on.

    Raises:
        UnsupportedOpError: Naming the first operator that rounds, wraps, or asks for something else than numbers.
    """
    whole, grown = {info.name}, set[str]()
    for node in graph.node:
        read = whole & names_read(node)
        if not read or node.op_type in ("Shape", "Size", *TRUTHS) or _casts_to_float(node) or _casts_to_truth(node):
            continue
        if node.op_type == "Where" and read == {node.input[0]}:
            continue
        # What is narrower, or has no sign, would wrap where sums leave its type.
        wraps = info.type.tensor_type.elem_type not in _WIDE and node.op_type in ARITHMETIC
        if wraps or node.op_type not in (*OF_NUMBERS, *ARITHMETIC) or node.domain not in ("", "ai.onnx"):
            raise _of_another_type(info, graph, node)
        if node.op_type in ARITHMETIC or grown.intersection(node.input):
            grown.update(node.output)
        if node.op_type == "Cast":
            _check_holds(node, info.type.tensor_type.elem_type, grown=bool(grown.intersection(node.input)))
            node.op_type = "Identity"
            del node.attribute[:]
        whole.update(node.output)


def _check_holds(cast: onnx.NodeProto, kind: int, *, grown: bool) -> None:
    """Check that a cast of integers of a type, or of what sums and products make of them, wraps none.

    Raises:
        UnsupportedOpError: If the type that it casts to is too narrow.
    """
    to = next((entry.i for entry in cast.attribute if entry.name == "to"), 0)
    given, made = (helper.tensor_dtype_to_np_dtype(each) for each in (kind, to))
    if to not in _WIDE and (grown or not np.can_cast(given, made)):
        raise Node(cast, []).unsupported(
            "to", f"is {made}, which wraps integers that it does not hold", "cast the input to int32, int64 or floats"
        )


_WIDE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def _depending(graph: onnx.GraphProto) -> set[str]:
    """The tensors that depend on an input that is no constant."""
    constants = {tensor.name for tensor in graph.initializer}
    found = {entry.name for entry in graph.input if entry.name not in constants}
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and found.intersection(node.input):
            found.update(node.output)
    return found


def _depth(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> set[int]:
    tensor = held.get(node.input[1])
    return set() if tensor is None else {int(np.ravel(numpy_helper.to_array(tensor))[0])}


def _casts_to_truth(node: onnx.NodeProto) -> bool:
    return node.op_type == "Cast" and any(
        entry.name == "to" and entry.i == onnx.TensorProto.BOOL for entry in node.attribute
    )


def _casts_to_float(node: onnx.NodeProto) -> bool:
    return node.op_type == "Cast" and any(
        entry.name == "to" and entry.i in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
        for entry in node.attribute
    )


def _of_another_type(
    info: onnx.ValueInfoProto, graph: onnx.GraphProto, reader: onnx.NodeProto | None = None
) -> UnsupportedOpError:
    kind = info.type.WhichOneof("value") or "tensor_type"
    shown = onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type) if kind == "tensor_type" else kind
    if reader is None:
        reader = next((node for node in graph.node if info.name in node.input), onnx.NodeProto(op_type="the graph"))
    return Node(reader, []).unsupported(
        f"input {info.name}",
        f"is of type {shown.removesuffix('_type')}; tensors of floats are needed, or of integers or truth values that "
        "are looked up, compared or cast to floats",
        "export the model with such an input",
    )
