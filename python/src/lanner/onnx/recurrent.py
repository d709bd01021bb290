"""Recurrent layers, unrolled: each step becomes a product with the weights of all gates, and what the gates do.

The weights of all steps are one tensor of the graph. Nodes are named by layer and step, as in ``lstm_0/t3/h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.recurrent_cells import CELLS, Direction, State, Step, as_wire
from lanner.onnx.recurrent_functions import read_functions
from lanner.onnx.registry import SEQUENCE_LENS, lowers
from lanner.onnx.terms import Array

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

    Raises:
        UnsupportedOpError: If anything but x depends on the secret, sequences differ in length, or an activation is not
            among the graph's operators.
        ModelError: If the weights' shapes do not fit.
    """
    x = _steps_of(node)
    steps = x.shape[0]
    runs = [_run(node, graph, x, direction) for direction in _directions(node, x.shape[1])]
    layout = node.attr("layout", 0)
    graph.enter(node.name)
    every, last, cell = (bool(name) for name in [*node.proto.output, "", ""][:3])
    outputs: list[Wire | None] = [None, None, None]
    if every:
        states = [run.states[step] for step in range(steps) for run in runs]
        outputs[0] = _joined(graph, states, (steps, len(runs)), 0 if layout else 2)
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
    lengths = node.constant(SEQUENCE_LENS) if len(node.inputs) > SEQUENCE_LENS else None
    if lengths is not None and not np.all(np.asarray(lengths) == x.shape[0]):
        raise node.unsupported(
            "sequence_lens",
            f"is {np.ravel(lengths).tolist()}, and every sequence must have all {x.shape[0]} steps",
            "export the model without it",
        )
    return x


def _directions(node: Node, inputs: int) -> list[Direction]:
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
    first = _initial(node, 5, count, hidden)
    cell = _initial(node, 6, count, hidden)
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


def _initial(node: Node, index: int, directions: int, hidden: int) -> Array:
    """The state before the first step, (directions, hidden), which is the same for all samples."""
    batch = 0 if node.attr("layout", 0) else 1
    if len(node.inputs) > index and isinstance(node.inputs[index], Wire):
        raise node.unsupported(
            f"input {index}",
            "is a state that depends on a private input, and a first state must be a constant",
            "fix the input that it comes from, as in --fix state=0, or write the cell of MatMul, Sigmoid, Tanh and Mul",
        )
    value = node.weight(index) if len(node.inputs) > index and node.constant(index) is not None else None
    if value is None:
        return np.zeros((directions, hidden), np.float32)
    samples = np.moveaxis(value, batch, 0) if value.ndim > batch else value
    if samples.shape[1:] != (directions, hidden) or not (samples == samples[:1]).all():
        needed = "directions, samples" if batch else "samples, directions"
        raise node.unsupported(
            f"input {index}", f"has shape {value.shape}; {needed} and units are needed, the same for all samples"
        )
    return np.asarray(samples[0], np.float32)
