"""Builds the float graph that the native compiler takes: JSON nodes and their tensors.

Shapes here have no batch axis: one sample at a time is computed in private.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.stacks import Places, Stacks
from lanner.onnx.tensors import SharedTensors
from lanner.onnx.wire import Wire

#: The version of the graph's JSON form.
FORMAT_VERSION = 2

#: The most elements of a value, and of an axis: those that the native compiler takes.
MAX_ELEMENTS = 1 << 26
MAX_AXIS = 1 << 20

__all__ = [
    "FORMAT_VERSION",
    "MAX_AXIS",
    "MAX_ELEMENTS",
    "MAX_INPUTS",
    "UNBOUNDED",
    "FloatGraph",
    "GraphBuilder",
    "Wire",
]

#: A constant this low is a mask, as -inf is: no ring holds it, and only a softmax may read what it is added to.
UNBOUNDED = -1e30

#: How many values one node of the graph may join.
MAX_INPUTS = 1024


@dataclass(frozen=True, slots=True)
class Made:
    """What made a wire.

    Attributes:
        operator: The graph operator.
        inputs: The wires that it reads.
        attributes: Its plain attributes.
        value: Its constant, if it has one; it broadcasts to what it is added to or multiplied with.
    """

    operator: str
    inputs: tuple[Wire, ...]
    attributes: dict[str, Any]
    value: NDArray[np.float32] | None

    @property
    def constant(self) -> float | None:
        """The number of its constant, if that is only one."""
        return float(self.value.flat[0]) if self.value is not None and self.value.size == 1 else None


@dataclass(frozen=True, slots=True)
class FloatGraph:
    """A graph in the form that the native compiler takes.

    Attributes:
        document: The graph as JSON.
        tensors: Its weights by name.
        output_shape: The shape of one sample's output.
    """

    document: str
    tensors: dict[str, NDArray[np.float32]]
    output_shape: tuple[int, ...]


class GraphBuilder:
    """Collects nodes in topological order, one method per graph operator.

    Args:
        input_name: The name of the graph's input.
        shape: The shape of one sample.
    """

    def __init__(self, input_name: str, shape: tuple[int, ...]) -> None:
        self.input = Wire(input_name or "input", shape)
        self._nodes: list[dict[str, Any]] = []
        self._tensors = SharedTensors()
        self._stacks = Stacks()
        self._names = {self.input.name}
        self._base = ""
        self._images: dict[str, Wire] = {}
        self._made: dict[str, Made] = {}
        self._moved: dict[str, Wire] = {}
        self._unbounded: dict[str, ModelError] = {}
        self._undefined: dict[str, NDArray[np.bool_]] = {}
        self._leaving_out: set[str] = set()
        self._affine: dict[str, tuple[Wire, NDArray[np.float32], NDArray[np.float32]]] = {}

    def enter(self, name: str) -> None:
        """Name the nodes added from here on after an ONNX node."""
        self._base = name

    def add_node(
        self,
        operator: str,
        inputs: tuple[Wire, ...],
        shape: tuple[int, ...],
        attributes: dict[str, Any] | None = None,
        tensors: dict[str, NDArray[np.float32] | None] | None = None,
    ) -> Wire:
        """Add a node.

        Args:
            operator: The graph operator.
            inputs: The wires it reads.
            shape: The shape of its result.
            attributes: Its plain attributes.
            tensors: Its tensor attributes; None for one that is absent.
        """
        self.check_size(shape)
        name = self._fresh_name(operator)
        members = dict(attributes or {})
        for role, tensor in (tensors or {}).items():
            members[role] = None if tensor is None else self._tensors.keep(f"{name}.{role}", tensor)
        op: Any = {operator: members} if members else operator
        self._nodes.append({"name": name, "op": op, "inputs": [wire.name for wire in inputs]})
        self._made[name] = Made(operator, inputs, dict(attributes or {}), (tensors or {}).get("value"))
        return Wire(name, shape)

    def check_size(self, shape: Sequence[int]) -> None:
        """Check that a value is not too large, before anything of its size is made.

        Raises:
            ModelError: If it is; the ONNX node is named.
        """
        if math.prod(shape) > MAX_ELEMENTS or max(shape, default=0) > MAX_AXIS:
            raise ModelError(
                f"a value of shape {tuple(shape)} has more than {MAX_ELEMENTS} elements, or {MAX_AXIS} on an axis",
                where=f"node {self._base}",
                fix="check the sizes in the model",
            )

    def is_relu(self, x: Wire) -> bool:
        """Whether a wire is what a ReLU made, so that nothing of it is below 0."""
        made = self.made(x)
        return made is not None and made.operator == "Relu"

    def made(self, x: Wire) -> Made | None:
        """What made a wire, or the image that it is a view of; None of the input."""
        return self._made.get(self.image_name(x))

    def image_name(self, x: Wire) -> str:
        """The name of a wire, or of the image that it is a view of."""
        return self._images.get(x.name, x).name

    def argument(self, x: Wire, name: str) -> Wire | None:
        """What a wire is the smooth function `name` of; None if it is not."""
        made = self.made(x)
        return made.inputs[0] if made is not None and name in made.attributes else None

    def note_unbounded(self, x: Wire, error: ModelError) -> None:
        """Note that a wire's values are masked ones: `finish` raises the error if anything that it needs reads them."""
        self._unbounded[self.image_name(x)] = error

    def note_undefined(self, x: Wire, places: NDArray[np.bool_]) -> None:
        """Note where a wire's values are NaN in floats: `finish` refuses what reads them."""
        self._undefined[x.name] = places

    def undefined(self, x: Wire) -> NDArray[np.bool_] | None:
        """Where a wire's values are NaN in floats; None where they are nowhere."""
        return self._undefined.get(x.name)

    def leaves_out(self, x: Wire) -> None:
        """Note that what makes a wire reads of another one only where that is defined."""
        self._leaving_out.add(self.image_name(x))

    def elementwise(
        self,
        operator: str,
        x: Wire,
        attributes: dict[str, Any] | None = None,
        tensors: dict[str, NDArray[np.float32] | None] | None = None,
    ) -> Wire:
        """Add a node that works on each element alone, or by the first axis; rows stay a view of their image."""
        image = self._images.get(x.name)
        if image is None:
            return self.add_node(operator, (x,), x.shape, attributes, tensors)
        return self.rows(self.add_node(operator, (image,), image.shape, attributes, tensors))

    def image(self, x: Wire) -> Wire:
        """Rows (c, length) as the image (c, 1, length); an image (c, h, w) as it is."""
        if len(x.shape) != 2:
            return x
        return self._images.get(x.name) or self.reshape(x, (x.shape[0], 1, x.shape[1]))

    def rows(self, image: Wire) -> Wire:
        """An image (c, 1, length) as rows (c, length); `image` takes them back without a node."""
        x = self.reshape(image, (image.shape[0], image.shape[2]))
        self._images[x.name] = image
        return x

    def matmul(self, x: Wire, weight: NDArray[np.float32], bias: NDArray[np.float32] | None = None) -> Wire:
        """Add ``x @ weight + bias``: x (n_in,), weight (n_in, n_out), bias (n_out,).

        Of an `affine` x it is one matrix with that.
        """
        if x.name in self._affine:
            x, matrix, offset = self._affine[x.name]
            given = offset.astype(np.float64) @ weight
            bias = (given if bias is None else given + bias).astype(np.float32)
            weight = (matrix.astype(np.float64) @ weight).astype(np.float32)
        return self.add_node("MatMul", (x,), (weight.shape[1],), tensors={"weight": weight, "bias": bias})

    def affine(self, x: Wire, matrix: NDArray[np.float32], offset: NDArray[np.float32]) -> Wire:
        """Add ``x @ matrix + offset``, as `matmul`, which a product behind it takes in; one element of x is moved."""
        alone = matrix.shape[1] == 1 and np.count_nonzero(matrix) == matrix.sum() == 1 and not offset.any()
        place = int(matrix.argmax()) if alone else 0
        y = self.slice(x, (range(place, place + 1),)) if alone else self.matmul(x, matrix, offset)
        self._affine[y.name] = (x, matrix, offset)
        return y

    def one_tap(self, x: Wire, weight: NDArray[np.float32], groups: int) -> Wire:
        """Add a convolution of one tap: x (c_in, h, w), weight (c_out, c_in / groups, 1, 1)."""
        attributes = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "groups": groups}
        shape = (weight.shape[0], *x.shape[1:])
        return self.add_node("Conv", (x,), shape, attributes, {"weight": weight, "bias": None})

    def add_constant(self, x: Wire, value: NDArray[np.float32]) -> Wire:
        """Add ``x + value``, where value broadcasts to x's shape."""
        return self._with_constant("AddConstant", x, value)

    def multiply_constant(self, x: Wire, value: NDArray[np.float32]) -> Wire:
        """Add ``x * value``, where value broadcasts to x's shape."""
        return self._with_constant("MulConstant", x, value)

    def negate(self, x: Wire) -> Wire:
        """Add ``-x``."""
        return self.multiply_constant(x, np.array(-1.0, np.float32))

    def subtract_from(self, value: float | NDArray[np.float32], x: Wire) -> Wire:
        """Add ``value - x``, where value broadcasts to x's shape."""
        return self.add_constant(self.negate(x), np.asarray(value, np.float32))

    def add(self, x: Wire, y: Wire) -> Wire:
        """Add the sum of two wires of equal shape."""
        return self.add_node("Add", (x, y), x.shape)

    def subtract(self, x: Wire, y: Wire) -> Wire:
        """Add the difference of two wires of equal shape."""
        return self.add(x, self.negate(y))

    def scale(self, x: Wire, factor: float) -> Wire:
        """Add ``factor * x``; nothing where the factor is 1."""
        return x if factor == 1.0 else self.multiply_constant(x, np.array(factor, np.float32))

    def shift(self, x: Wire, term: float) -> Wire:
        """Add ``x + term``; nothing where the term is 0."""
        return x if term == 0.0 else self.add_constant(x, np.array(term, np.float32))

    def square(self, x: Wire) -> Wire:
        """Add ``x * x``."""
        return self.elementwise("Square", x)

    def relu(self, x: Wire) -> Wire:
        """Add ``max(x, 0)``."""
        return self.elementwise("Relu", x)

    def step(self, x: Wire) -> Wire:
        """Add 1 where x is above 0, else 0."""
        return self.elementwise("Step", x)

    def multiply(self, x: Wire, y: Wire) -> Wire:
        """Add the element-wise product of two wires of equal shape."""
        return self.add_node("Mul", (x, y), x.shape)

    def matrix_product(self, x: Wire, y: Wire) -> Wire:
        """Add the products of matrices in pairs: x (g, m, k), y (g, k, n); the result is (g, m, n)."""
        return self.add_node("MatrixProduct", (x, y), (*x.shape[:2], y.shape[2]))

    def within(
        self, x: Wire, name: str, low: float | None = None, high: float | None = None, **attributes: float
    ) -> Wire:
        """Add a smooth function between ends, as far as these are known; beyond one it is what it is there."""
        of = {name: attributes or None}
        return self.elementwise("Function", x, {"Within": {"of": of, "low": low, "high": high}})

    def function(self, x: Wire, name: str, **attributes: float) -> Wire:
        """Add a smooth function of each element."""
        return self.elementwise("Function", x, {name: attributes or None})

    def ramp(self, x: Wire, name: str, **attributes: float | bool) -> Wire:
        """Add a smooth function that is near a constant far below 0 and near a line far above."""
        return self.elementwise("Ramp", x, {name: attributes or None})

    def clip(self, x: Wire, high: float) -> Wire:
        """Add ``min(max(x, 0), high)``; fixed point clips from 0 alone."""
        return self.elementwise("Clip", x, {"min": 0.0, "max": high})

    def reshape(self, x: Wire, shape: tuple[int, ...]) -> Wire:
        """Add another view of the same elements; none where the shape stays."""
        if shape == x.shape:
            return x
        operator, attributes = ("Flatten", None) if shape == (x.size,) else ("Reshape", {"shape": list(shape)})
        reshaped = self._move(operator, x, shape, attributes)
        self._stacks.note(reshaped, self._stacks.parts(x))
        return reshaped

    def transpose(self, x: Wire, axes: tuple[int, ...]) -> Wire:
        """Add the permutation whose axis j is x's axis ``axes[j]``; a reshape where no element moves."""
        shape = tuple(x.shape[axis] for axis in axes)
        moved = [axis for axis in axes if x.shape[axis] > 1]
        if moved == sorted(moved):
            return self.reshape(x, shape)
        if (whole := self._from_stack(x, lambda places: places.transpose(axes))) is not None:
            return whole
        return self._move("Transpose", x, shape, {"axes": list(axes)})

    def slice(self, x: Wire, picks: tuple[range, ...]) -> Wire:
        """Add the choice of the indices that `picks` names per axis; none where all stay as they are.

        What is cut out of joined values at their seams is these values, whose join nobody may need then.
        """
        if picks == tuple(range(side) for side in x.shape):
            return x
        sizes = [len(pick) for pick in picks]
        if (whole := self._from_stack(x, lambda places: places[np.ix_(*picks)])) is not None:
            return whole
        attributes = {
            "starts": [pick.start for pick in picks],
            "sizes": sizes,
            # One index has no step; a range of one may have any.
            "steps": [pick.step if len(pick) > 1 else 1 for pick in picks],
        }
        return self._move("Slice", x, tuple(sizes), attributes)

    def pad(self, x: Wire, before: tuple[int, ...], after: tuple[int, ...]) -> Wire:
        """Add as many zeros before and after each axis as given, from 0; none where all are 0."""
        if not any((*before, *after)):
            return x
        shape = tuple(sum(sides) for sides in zip(before, x.shape, after, strict=True))
        return self.add_node("Pad", (x,), shape, {"before": list(before), "after": list(after)})

    def zero_before(self, x: Wire) -> Wire:
        """Add the vector of 0 and the one element of x."""
        self.enter("two_classes")
        return self.pad(self.reshape(x, (1,)), (1,), (0,))

    def concat(self, wires: tuple[Wire, ...], axis: int) -> Wire:
        """Add wires one after another along an axis; they are equal on every other axis."""
        if len(wires) == 1:
            return wires[0]
        if len(wires) > MAX_INPUTS:
            parts = [wires[first : first + MAX_INPUTS] for first in range(0, len(wires), MAX_INPUTS)]
            return self.concat(tuple(self.concat(part, axis) for part in parts), axis)
        shape = list(wires[0].shape)
        shape[axis] = sum(wire.shape[axis] for wire in wires)
        joined = self.add_node("Concat", wires, tuple(shape), {"axis": axis})
        if math.prod(shape[:axis]) == 1:
            self._stacks.note(joined, wires)
        return joined

    def global_average_pool(self, x: Wire) -> Wire:
        """Add the mean over height and width: x (c, h, w); the result is (c, 1, 1)."""
        return self.add_node("GlobalAveragePool", (x,), (x.shape[0], 1, 1))

    def global_max_pool(self, x: Wire) -> Wire:
        """Add the maximum over height and width: x (c, h, w); the result is (c, 1, 1)."""
        attributes = {"kernel": list(x.shape[1:]), "strides": [1, 1], "pads": [0] * 4}
        return self.add_node("MaxPool", (x,), (x.shape[0], 1, 1), attributes)

    def finish(self, output: Wire) -> FloatGraph:
        """Return the graph with this wire as its output, without the nodes that it does not need.

        Raises:
            ModelError: If one of these reads a masked value that is no score of a softmax.
        """
        needed, nodes = {output.name}, []
        for node in reversed(self._nodes):
            if node["name"] in needed:
                needed.update(node["inputs"])
                nodes.append(node)
        self._check_masked(nodes, output)
        document = {
            "format_version": FORMAT_VERSION,
            "inputs": [{"name": self.input.name, "shape": list(self.input.shape)}],
            "nodes": nodes[::-1],
            "output": output.name,
        }
        used = {name for node in nodes for name in _tensors_of(node["op"])}
        tensors = {name: tensor for name, tensor in self._tensors.by_name.items() if name in used}
        return FloatGraph(json.dumps(document), tensors, output.shape)

    def _check_masked(self, nodes: Sequence[dict[str, Any]], output: Wire) -> None:
        """Check what `note_unbounded` and `note_undefined` noted of nodes that are needed."""
        for node in reversed(nodes):
            name = node["name"]
            if name in self._unbounded:
                raise self._unbounded[name]
            read = [*node["inputs"], *([name] if name == output.name else [])]
            of = next((other for other in read if other in self._undefined and name not in self._leaving_out), None)
            if of is not None:
                raise ModelError(
                    "a mask hides every position of a row, whose softmax is NaN",
                    where=f"node {of}",
                    fix="let each row of the mask leave a position",
                )

    def _move(self, operator: str, x: Wire, shape: tuple[int, ...], attributes: dict[str, Any] | None) -> Wire:
        """Add a movement of elements, once: what several nodes move alike is one value, rescaled once."""
        key = json.dumps([operator, x.name, attributes])
        if key not in self._moved:
            self._moved[key] = self.add_node(operator, (x,), shape, attributes)
        return self._moved[key]

    def _from_stack(self, x: Wire, move: Callable[[Places], Places]) -> Wire | None:
        """Elements of joined values as the values that they are; None where x is no such, or its seams are not kept."""
        places = move(np.arange(x.size).reshape(x.shape)) if self._stacks.parts(x) else None
        parts = None if places is None else self._stacks.whole_parts(x, places)
        if parts is None or places is None:
            return None
        return self.reshape(self.concat(tuple(self.reshape(part, (part.size,)) for part in parts), 0), places.shape)

    def _with_constant(self, operator: str, x: Wire, value: NDArray[np.float32]) -> Wire:
        if x.name in self._images and value.ndim == 2:
            value = value[:, np.newaxis, :]
        return self.elementwise(operator, x, tensors={"value": value})

    def _fresh_name(self, operator: str) -> str:
        base = self._base or operator
        candidates = (base, f"{base}.{operator}")
        name = next((name for name in candidates if name not in self._names), "")
        number = 2
        while not name or name in self._names:
            name = f"{base}.{operator}{number}"
            number += 1
        self._names.add(name)
        return name


def _tensors_of(op: Any) -> list[str]:  # noqa: ANN401 - a node's operator as JSON
    """What may be names of tensors among the members of an operator."""
    if not isinstance(op, dict):
        return []
    return [value for members in op.values() for value in (members or {}).values() if isinstance(value, str)]
