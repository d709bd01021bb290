"""One step of each recurrent operator.

The gates' sums are products of the step's input and of the state, joined, with the weights of as many gates as go
together: a layer costs about the same for one gate as for four. Gates of one activation are computed as one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lanner.onnx.bounds import between
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.recurrent_functions import Function
from lanner.onnx.terms import Array, Term, minus, plus, times


@dataclass(frozen=True, slots=True)
class Direction:
    """A recurrent layer in one direction.

    Attributes:
        name: Its name, which those of its nodes begin with.
        is_reverse: Whether it goes from the last step to the first.
        input_weight: (gates, hidden, inputs), the gates in the operator's order.
        state_weight: (gates, hidden, hidden).
        input_bias: (gates, hidden).
        state_bias: (gates, hidden).
        size: The number of hidden units.
        hidden: The state before the first step, (hidden,).
        cell: An LSTM's cell there; zeros elsewhere.
        peepholes: What an LSTM's gates take of each element of the cell, (4, hidden); zeros elsewhere.
        functions: The activations, in the operator's order.
        clip: The largest magnitude of a gate's sum; 0 for none.
        joins_reset: Whether a GRU resets the state behind its weights.
        joins_forget: Whether an LSTM forgets what its input gate does not take.
    """

    name: str
    is_reverse: bool
    input_weight: Array
    state_weight: Array
    input_bias: Array
    state_bias: Array
    size: int
    hidden: Term
    cell: Term
    peepholes: Array
    functions: Sequence[Function]
    clip: float
    joins_reset: bool
    joins_forget: bool


@dataclass(frozen=True, slots=True)
class State:
    """What a step leaves to the next.

    Attributes:
        hidden: The state, (hidden,).
        cell: An LSTM's cell, (hidden,).
    """

    hidden: Term
    cell: Term


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a layer.

    Attributes:
        graph: Where its nodes are added.
        layer: The layer.
        name: The step's name.
        x: Its input, (inputs,).
    """

    graph: GraphBuilder
    layer: Direction
    name: str
    x: Wire

    def enter(self, part: str) -> None:
        """Name the nodes added from here on after a part of the step."""
        self.graph.enter(f"{self.name}/{part}")

    def sums(self, part: str, state: Term, gates: Sequence[int], *, apart: bool = False) -> Wire:
        """Add ``W x + R h + b`` of some gates, one after another.

        Args:
            part: What the node is called.
            state: The state, or what a GRU makes of it.
            gates: Which gates.
            apart: Whether the last gate's ``R h`` stands behind all, apart from its ``W x``.
        """
        layer, size = self.layer, self.layer.size
        of_x, of_h, bias_x, bias_h = (
            np.concatenate([tensor[gate] for gate in gates])
            for tensor in (layer.input_weight, layer.state_weight, layer.input_bias, layer.state_bias)
        )
        if apart:
            last = size * (len(gates) - 1)
            of_x, bias_x = np.pad(of_x, ((0, size), (0, 0))), np.pad(bias_x, (0, size))
            of_h = np.insert(of_h, [last] * size, 0, axis=0)
            bias_h = np.insert(bias_h, [last] * size, 0)
        if isinstance(state, Wire):
            self.enter(f"{part}/joined")
            joined = self.graph.concat((self.x, state), 0)
            self.enter(part)
            return self.graph.matmul(joined, np.concatenate([of_x, of_h], 1).T, bias_x + bias_h)
        self.enter(part)
        return self.graph.matmul(self.x, of_x.T, bias_x + bias_h + of_h @ state)

    def gate(self, part: str, function: Function, total: Wire) -> Wire:
        """Add an activation, behind the clip of its sum."""
        self.enter(part)
        bound = self.layer.clip
        return function(self.graph, between(self.graph, total, -bound, bound) if bound else total)

    def parts(self, x: Wire, *sizes: int) -> list[Wire]:
        """Cut a vector into pieces of these sizes."""
        ends = np.cumsum(sizes).tolist()
        return [self.graph.slice(x, (range(end - size, end),)) for size, end in zip(sizes, ends, strict=True)]


#: Adds a step behind a state.
Cell = Callable[[Step, State], State]


def _rnn(step: Step, before: State) -> State:
    sums = step.sums("sum", before.hidden, [0])
    return State(step.gate("h", step.layer.functions[0], sums), before.cell)


def _gru(step: Step, before: State) -> State:
    """``h' = z * h + (1 - z) * n``, which is ``n + z * (h - n)``: one product fewer."""
    graph, layer, state, size = step.graph, step.layer, before.hidden, step.layer.size
    inner, outer = layer.functions
    if layer.joins_reset:
        sums = step.sums("sums", state, [_UPDATE, _RESET, _CANDIDATE], apart=True)
        both, of_x, of_state = step.parts(sums, 2 * size, size, size)
        z, r = step.parts(step.gate("zr", inner, both), size, size)
        step.enter("r_h")
        total = graph.add(of_x, as_wire(times(graph, r, of_state)))
    else:
        z, r = step.parts(step.gate("zr", inner, step.sums("sums", state, [_UPDATE, _RESET])), size, size)
        step.enter("r_h")
        total = step.sums("sum", times(graph, r, state), [_CANDIDATE])
    n = step.gate("n", outer, total)
    step.enter("h")
    return State(plus(graph, n, times(graph, z, minus(graph, state, n))), before.cell)


def _lstm(step: Step, before: State) -> State:
    """``c' = f * c + i * n`` and ``h' = o * g(c')``; where it forgets what it does not take, f is 1 - i."""
    graph, layer, size, cell = step.graph, step.layer, step.layer.size, before.cell
    inner, middle, outer = layer.functions
    early = [_INPUT] if layer.joins_forget else [_INPUT, _FORGET]
    # An output gate that looks at the cell must wait for it.
    waits = bool(layer.peepholes[_OUTPUT].any())
    at_once = early if waits else [*early, _OUTPUT]
    sums = step.sums("sums", before.hidden, [*early, _OUTPUT, _NEW])
    *_, of_output, of_new = step.parts(sums, *([size] * (len(early) + 2)))
    looked = _look(step, graph.slice(sums, (range(size * len(at_once)),)), at_once, cell)
    opened = step.gate("".join(_LETTERS[gate] for gate in at_once), inner, looked)
    gates = dict(zip(at_once, step.parts(opened, *([size] * len(at_once))), strict=True))
    new = step.gate("n", middle, of_new)
    step.enter("c")
    if layer.joins_forget:
        cell = plus(graph, cell, times(graph, gates[_INPUT], minus(graph, new, cell)))
    else:
        cell = plus(graph, times(graph, gates[_INPUT], new), times(graph, gates[_FORGET], cell))
    if waits:
        gates[_OUTPUT] = step.gate("o", inner, _look(step, of_output, [_OUTPUT], cell))
    step.enter("g_c")
    shown = outer(graph, as_wire(cell))
    step.enter("h")
    return State(times(graph, gates[_OUTPUT], shown), cell)


def _look(step: Step, sums: Wire, gates: Sequence[int], cell: Term) -> Wire:
    """Add what some gates take of the cell."""
    weights = np.concatenate([step.layer.peepholes[gate] for gate in gates])
    if not weights.any():
        return sums
    step.enter("peepholes")
    repeated = step.graph.concat((cell,) * len(gates), 0) if isinstance(cell, Wire) else np.tile(cell, len(gates))
    return as_wire(plus(step.graph, sums, times(step.graph, repeated, weights)))


def as_wire(term: Term) -> Wire:
    """A term that is computed.

    Raises:
        TypeError: If it is known.
    """
    if not isinstance(term, Wire):
        raise TypeError("a state that follows from no input")
    return term


#: The gates of a GRU and of an LSTM in ONNX's order.
_UPDATE, _RESET, _CANDIDATE = range(3)
_INPUT, _OUTPUT, _FORGET, _NEW = range(4)
_LETTERS = {_INPUT: "i", _OUTPUT: "o", _FORGET: "f"}

#: The step of each operator.
CELLS: dict[str, Cell] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
