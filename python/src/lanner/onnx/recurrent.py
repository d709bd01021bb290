"""Recurrent layers, unrolled: each step becomes a product with the weights of all gates, and what the gates do.

The weights of all steps are one tensor of the graph. Nodes are named by layer and step, as in ``lstm_0/t3/h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanner.errors import spelled
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.recurrent_cells import CELLS, Direction, State, Step, as_wire
from lanner.onnx.recurrent_functions import read_functions
from lanner.onnx.registry import SEQUENCE_LENS, lowers
from lanner.onnx.terms import Array, Term

#: How many directions each value of the attribute has, and which of them go from the last step to the first.
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

#: So many steps are written as one that repeats: `FEWEST_TIMES` of `crates/network/src/repeats.rs`, and the first ones.
_MANY = 8


@lowers("LSTM", "GRU", "RNN")
def lower_recurrent(node: Node, graph: GraphBuilder) -> tuple[Wire | None, ...]:
    """Lower ``LSTM``, ``GRU`` and ``RNN``, step by step.

    Shapes: x (steps, inputs); the outputs are all states (steps, directions, hidden) and the last one of each
    direction (directions, hidden), of an LSTM the last cell too. The batch is at axis 1 of x and of the last states,
    and at axis 2 of all states; in layout 1 it is first everywhere.

    States before the first step may be secrets, (directions, hidden) with the batch where the last states have it.
    Of sequences that are all shorter than x the states behind their ends are zeros.

    Raises:
        UnsupportedOpError: If weights or lengths depend on the secret, sequences differ in length, or an activation is
            not among the graph's operators.
        ModelError: If the weights' shapes do not fit.
    """
    x = _steps_of(node)
    steps, length = x.shape[0], _length(node, x)
    read = graph.slice(x.plain(), (range(length), range(x.shape[1])))
    runs = [_run(node, graph, read, direction) for direction in _directions(node, graph, x.shape[1])]
    layout = node.attr("layout", 0)
    graph.enter(node.name)
    every, last, cell = (bool(name) for name in [*node.proto.output, "", ""][:3])
    outputs: list[Wire | None] = [None, None, None]
    if every:
        states = [run.states[step] for step in range(length) for run in runs]
        joined = graph.reshape(graph.concat(tuple(states), 0), (length, len(runs), states[0].size))
        whole = graph.pad(joined, (0, 0, 0), (steps - length, 0, 0))
        outputs[0] = replace(whole, batch=0 if layout else 2)
    if last:
        outputs[1] = _joined(graph, [as_wire(run.last.hidden) for run in runs], (len(runs),), 1 - layout)
    if cell:
        outputs[2] = _joined(graph, [as_wire(run.last.cell) for run in runs], (len(runs),), 1 - layout)
    return tuple(outputs[: len(node.proto.output)])


@dataclass(frozen=True, slots=True)
class _Run:
    """What a direction computes.

    Attributes:
        states: The state behind each step, by the step's place in x.
        last: What the last step that is run leaves.
    """

    states: Sequence[Wire]
    last: State


def _run(node: Node, graph: GraphBuilder, x: Wire, direction: Direction) -> _Run:
    """Run one direction over all steps."""
    steps, inputs = x.shape
    order = range(steps)[::-1] if direction.is_reverse else range(steps)

    def named(place: int) -> str:
        return f"{direction.name}/t{place}"

    def taken(place: int) -> Wire:
        graph.enter(f"{named(place)}/x")
        return graph.reshape(graph.slice(x, (range(place, place + 1), range(inputs))), (inputs,))

    # In front of all steps, whose operations are then the same in each, as far as they are many enough to be told once.
    ahead = {place: taken(place) for place in order} if steps >= _MANY else {}
    states: dict[int, Wire] = {}
    state = State(direction.hidden, direction.cell)
    for place in order:
        read = ahead[place] if ahead else taken(place)
        state = CELLS[node.operator](Step(graph, direction, named(place), read), state)
        states[place] = as_wire(state.hidden)
    return _Run([states[place] for place in range(steps)], state)


def _joined(graph: GraphBuilder, values: Sequence[Wire], shape: tuple[int, ...], batch: int) -> Wire:
    joined = graph.concat(tuple(values), 0)
    return replace(graph.reshape(joined, (*shape, values[0].size)), batch=batch)


def _steps_of(node: Node) -> Wire:
    """The input, of shape (steps, inputs).

    Raises:
        UnsupportedOpError: If the number of steps is not known, or sequences differ in length.
    """
    x, layout = node.wire(0), node.attr("layout", 0)
    if layout not in (0, 1):
        raise node.unsupported("layout", f"is {layout}; 0 and 1 are known")
    if len(x.shape) == 2 and x.batch == 0 and not layout:
        raise node.unsupported(
            "input 0",
            f"has shape {x.batch_shape}, so that its steps are as many as its first axis has, which is not known",
            "export the model with a fixed number of steps, and with the samples along the second axis or layout 1",
        )
    if len(x.shape) != 2 or x.batch != 1 - layout:
        needed = "samples, steps" if layout else "steps, samples"
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; {needed} and inputs are needed")
    return x


def _length(node: Node, x: Wire) -> int:
    """How many steps the sequences have, which is public.

    Raises:
        UnsupportedOpError: If it depends on the secret, or they differ.
    """
    steps = x.shape[0]
    value = node.inputs[SEQUENCE_LENS] if len(node.inputs) > SEQUENCE_LENS else None
    if isinstance(value, Wire):
        raise node.unsupported(
            "sequence_lens",
            "depends on the input, and the number of steps is public",
            spelled("make it a constant, as in ⟦fix=NAME=STEPS⟧, or export the model without it"),
        )
    lengths = [steps] if value is None else np.ravel(value).tolist()
    if len(set(lengths)) != 1 or not 1 <= lengths[0] <= steps:
        raise node.unsupported(
            "sequence_lens",
            f"is {lengths}, and all sequences must have the same number of steps, from 1 to {steps}",
            "export the model without it",
        )
    return int(lengths[0])


def _directions(node: Node, graph: GraphBuilder, inputs: int) -> list[Direction]:
    """The layer's directions, with their weights."""
    kind = str(node.attr("direction", "forward"))
    if kind not in _DIRECTIONS:
        raise node.unsupported("direction", f"is {kind}")
    reverse = _DIRECTIONS[kind]
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.operator]
    recurrence = node.weight(2)
    hidden = recurrence.shape[-1] if recurrence.ndim == 3 else 0
    count = len(reverse)
    weight = _checked(node, 1, (count, gates * hidden, inputs))
    recurrence = _checked(node, 2, (count, gates * hidden, hidden))
    bias = _checked(node, 3, (count, 2 * gates * hidden))
    first = _initial(node, graph, 5, count, hidden)
    cell = _initial(node, graph, 6, count, hidden)
    peepholes = _checked(node, 7, (count, 3 * hidden)).reshape(count, 3, hidden)
    functions = read_functions(node, count)
    clip = float(node.attr("clip", 0.0))
    if clip < 0:
        raise node.unsupported("clip", f"is {clip}; a positive number is needed")
    names = [node.name] if count == 1 else [f"{node.name}/forward", f"{node.name}/reverse"]
    return [
        Direction(
            name=names[index],
            is_reverse=reverse[index],
            input_weight=weight[index].reshape(gates, hidden, inputs),
            state_weight=recurrence[index].reshape(gates, hidden, hidden),
            input_bias=bias[index].reshape(2, gates, hidden)[0],
            state_bias=bias[index].reshape(2, gates, hidden)[1],
            size=hidden,
            hidden=first[index],
            cell=cell[index],
            peepholes=np.pad(peepholes[index], ((0, 1), (0, 0))),
            functions=functions[index],
            clip=clip,
            joins_reset=bool(node.attr("linear_before_reset", 0)),
            joins_forget=bool(node.attr("input_forget", 0)),
        )
        for index in range(count)
    ]


def _checked(node: Node, index: int, shape: tuple[int, ...]) -> Array:
    """An input of weights; zeros where it is absent.

    Raises:
        UnsupportedOpError: If it is not constant, or has another shape.
    """
    if len(node.inputs) <= index or node.constant(index) is None:
        return np.zeros(shape, np.float32)
    value = node.weight(index)
    if value.shape != shape or 0 in shape:
        raise node.unsupported(f"input {index}", f"has shape {value.shape}; {shape} is needed")
    return value


def _initial(node: Node, graph: GraphBuilder, index: int, directions: int, hidden: int) -> list[Term]:
    """The state before the first step of each direction, (hidden,): a secret, or the same for all samples.

    Raises:
        UnsupportedOpError: If it has another shape, or samples differ.
    """
    batch = 0 if node.attr("layout", 0) else 1
    needed = f"{'directions, samples' if batch else 'samples, directions'} and units are needed"
    given = node.inputs[index] if len(node.inputs) > index else None
    if isinstance(given, Wire):
        # Of one sample and one direction either axis is the samples'.
        is_placed = given.batch == batch or (directions == 1 and given.batch < 2)
        if given.shape != (directions, hidden) or not is_placed or any(given.merged):
            raise node.unsupported(f"input {index}", f"has shape {given.batch_shape}; {needed}")
        plain = given.plain()
        rows = (graph.slice(plain, (range(place, place + 1), range(hidden))) for place in range(directions))
        return [graph.reshape(row, (hidden,)) for row in rows]
    if given is None:
        return [np.zeros(hidden, np.float32)] * directions
    value = node.weight(index)
    samples = np.moveaxis(value, batch, 0) if value.ndim > batch else value
    if samples.shape[1:] != (directions, hidden) or not (samples == samples[:1]).all():
        raise node.unsupported(f"input {index}", f"has shape {value.shape}; {needed}, the same for all samples")
    return list(np.asarray(samples[0], np.float32))
