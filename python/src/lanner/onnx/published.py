"""Tables of embeddings that the owner publishes: which inputs are looked up in one, and who else reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.embeddings import ALL, Embeddings, of_floats
from lanner.errors import MisuseError, ModelError, option_named, spelled
from lanner.named import factor_for
from lanner.onnx.bodies import names_read
from lanner.onnx.contents import constant_nodes
from lanner.onnx.entries import Entry

#: The option, in errors.
_OPTION = "public_embeddings"

#: What helps where one table is not published.
_LEAVE = "leave ⟦public_embeddings⟧ out, or name tables of other inputs"

#: Operators that leave indices what they are.
_CARRIERS = frozenset(("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Expand"))

#: Operators that look at no elements.
_OF_SHAPES = frozenset(("Shape", "Size"))


def read_published(given: bool | str | Sequence[str] | None) -> tuple[str, ...]:
    """Read the option ``public_embeddings``: names of tables, the one of `lanner.embeddings.ALL`, or none.

    Raises:
        MisuseError: If a name is empty.
    """
    if given is None or isinstance(given, bool):
        return (ALL,) if given else ()
    names = given.split(",") if isinstance(given, str) else list(given)
    if not all(names):
        fix = spelled("write ⟦public_embeddings=all⟧, or names of tables")
        raise MisuseError(f"{given!r} has an empty name", where=option_named(_OPTION), fix=fix)
    return tuple(dict.fromkeys(names))


@dataclass(slots=True)
class _Uses:
    """What reads the elements of an input.

    Attributes:
        lookups: The nodes that look them up in a table that the file holds, and its name.
        others: The other nodes.
    """

    lookups: list[tuple[onnx.NodeProto, str]] = field(default_factory=list)
    others: list[onnx.NodeProto] = field(default_factory=list)


def publish(
    entries: Sequence[Entry], graph: onnx.GraphProto, needed: Sequence[onnx.NodeProto], wanted: Sequence[str]
) -> list[Entry]:
    """Inputs that are looked up in a table which its owner publishes, with the table.

    Args:
        entries: The file's inputs.
        graph: The file's graph.
        needed: Its nodes that count.
        wanted: As of `Frame.published`.

    Raises:
        MisuseError: If no input is looked up in a table of a name that is wanted.
        ModelError: If none is looked up in any, or a table that is not wanted by its name is read elsewhere.
    """
    if not wanted:
        return list(entries)
    constants = _Constants(graph, needed)
    uses = {entry.named.name: constants.uses_of(entry.named.name) for entry in entries if entry.named.choices}
    tables = {name for of in uses.values() for _, name in of.lookups}
    every = tuple(wanted) == (ALL,)
    unknown = [name for name in wanted if not every and name not in tables]
    if not tables:
        what = "no input is looked up in a table that the file holds"
        raise ModelError(what, where=option_named(_OPTION), fix="leave the option out")
    if unknown:
        what = f"no input is looked up in a table {unknown[0]}"
        raise MisuseError(what, where=option_named(_OPTION), fix=f"name one of {', '.join(sorted(tables))}")
    if any(entry.named.columns is not None for entry in entries):
        what = "the file has trees, whose inputs have grids of their own"
        raise ModelError(what, where=option_named(_OPTION), fix="leave the option out")
    return [
        entry
        if not (of := uses.get(entry.named.name, _Uses())).lookups
        or not (every or any(name in wanted for _, name in of.lookups))
        else _published(entry, of, constants, alone=len(entries) == 1, confirmed=not every)
        for entry in entries
    ]


def _published(entry: Entry, uses: _Uses, constants: _Constants, *, alone: bool, confirmed: bool) -> Entry:
    """An input whose rows the client gives.

    Raises:
        ModelError: If something else reads its indices, or its table.
    """
    where = f"input {entry.named.name}"
    names = list(dict.fromkeys(name for _, name in uses.lookups))
    name = names[0]
    reader = next(iter(uses.others), None)
    if reader is not None or len(names) > 1:
        what = (
            f"{_shown(reader)} also needs the integers, but with public embeddings the client sends only rows of {name}"
            if reader is not None
            else f"it is looked up in {len(names)} tables, {', '.join(names)}, and a client gives the rows of one"
        )
        raise ModelError(what, where=where, fix=spelled(_LEAVE))
    embeddings = constants.table_of(name)
    if embeddings is None:
        raise ModelError(
            f"{name}, which it is looked up in, is no table of finite floats with rows and columns",
            where=where,
            fix=spelled(_LEAVE),
        )
    if not confirmed and (found := constants.reader_of(name, [node for node, _ in uses.lookups])) is not None:
        raise ModelError(
            f"{_shown(found[0])} reads {found[1]}, too, and these weights would be public with the embeddings",
            where=where,
            fix=spelled(
                f"leave ⟦public_embeddings⟧ out, or confirm that they may be public by ⟦public_embeddings={name}⟧"
            ),
        )
    factor = 1.0 if alone else factor_for(max(map(abs, embeddings.ends())))
    named = replace(entry.named, choices=embeddings.rows, factor=factor, embeddings=embeddings)
    return replace(entry, named=named)


class _Constants:
    """The tensors that a file holds, and who reads them."""

    def __init__(self, graph: onnx.GraphProto, needed: Sequence[onnx.NodeProto]) -> None:
        self._needed = needed
        self._held = {tensor.name: tensor for tensor in graph.initializer} | constant_nodes(graph)
        self._own = {name: name for name in self._held}
        for node in graph.node:
            if node.op_type == "Identity" and node.input[0] in self._own:
                self._own[node.output[0]] = self._own[node.input[0]]

    def uses_of(self, name: str) -> _Uses:
        """What reads an input's elements."""
        uses, carried = _Uses(), {name}
        for node in self._needed:
            read = carried.intersection(names_read(node))
            if not read or node.op_type in _OF_SHAPES:
                continue
            if node.op_type in _CARRIERS and read == {node.input[0]} and node.domain in ("", "ai.onnx"):
                carried.update(node.output)
            elif (table := self._looked_up(node, read)) is not None:
                uses.lookups.append((node, table))
            else:
                uses.others.append(node)
        return uses

    def _looked_up(self, node: onnx.NodeProto, read: set[str]) -> str | None:
        """The table that a node looks rows up in, if it does."""
        axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
        if node.op_type != "Gather" or axis != 0 or node.input[1] not in read:
            return None
        return self._own.get(node.input[0])

    def table_of(self, name: str) -> Embeddings | None:
        """A table of finite floats with its hash; None if it is none."""
        return of_floats(self._array(name))

    def reader_of(self, name: str, lookups: Sequence[onnx.NodeProto]) -> tuple[onnx.NodeProto, str] | None:
        """A node beside these that reads a table's numbers, as they are or turned round, and as which tensor."""
        same = {name, *self._copies_of(name)}
        for node in self._needed:
            if node in lookups or (node.op_type == "Identity" and node.input[0] in self._own):
                continue
            for read in sorted(names_read(node)):
                if self._own.get(read) in same:
                    return node, self._own[read]
        return None

    def _copies_of(self, name: str) -> Iterator[str]:
        """Other tensors with the same numbers: exporters copy what is tied, and turn it round."""
        table = self._array(name)
        for other, tensor in self._held.items():
            if other == name or sorted(tensor.dims) != sorted(table.shape):
                continue
            array = self._array(other)
            if array.dtype == table.dtype and (np.array_equal(array, table) or np.array_equal(array, table.T)):
                yield other

    def _array(self, name: str) -> NDArray[np.generic]:
        return np.asarray(numpy_helper.to_array(self._held[name]))


def _shown(node: onnx.NodeProto | None) -> str:
    return "" if node is None else f"{node.op_type} {node.name}".strip()
