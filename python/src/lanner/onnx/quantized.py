"""Networks that are quantised already, as float networks: lanner quantises in its own way, for its own rings.

A quantised tensor is its real values here, with the unit that its integers count in beside them (`Quantized`). Rounding
is left out, as what lanner rounds replaces it. Saturation is not: a quantiser drops a ReLU or a Clip whose bounds are
those of the integers, so that they alone are the activation, and inputs beyond what it was calibrated on are cut off.

So results differ from those of the integers by what rounding makes, some of the quantiser's own steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.number_types import FLOATS
from lanner.onnx.registry import Lowering, Value, find_lowering, lowers


@dataclass(frozen=True, slots=True)
class Unit:
    """What a tensor's integers count: ``real = (integer - zero) * scale``.

    Attributes:
        scale: The real value of a step; None where it follows from the secret (`DynamicScale`).
        zero: The integer that stands for 0; 0 where it follows from the secret.
        source: Where it follows from the secret, the node that it comes from.
    """

    scale: float | None
    zero: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Quantized(Wire):
    """The real values of a tensor of integers.

    Attributes:
        unit: What the integers count.
    """

    unit: Unit


@dataclass(frozen=True, slots=True, eq=False)
class DynamicScale(Wire):
    """The scale of a tensor that is quantised by its own range, times a constant.

    Attributes:
        source: The node that quantises.
        factor: The constant.
    """

    source: str
    factor: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DynamicZero(Wire):
    """The zero point of a tensor that is quantised by its own range.

    Attributes:
        source: The node that quantises.
    """

    source: str


_SPECIAL = (Quantized, DynamicScale, DynamicZero)


def holds_integers(value: object) -> bool:
    """Whether a value is quantised, or tells how another is."""
    return isinstance(value, _SPECIAL)


def lower_integers(node: Node, graph: GraphBuilder, lowering: Lowering) -> Value | tuple[Value | None, ...]:
    """Lower a node that reads quantised values: what moves integers moves real values.

    Raises:
        UnsupportedOpError: If the operator does something else with integers.
    """
    operator = node.qualified_operator
    if operator in _OWN:
        return lowering(node, graph)
    if operator == "Mul":
        return _scaled(node, graph)
    first = node.inputs[0]
    if operator == "Cast" and isinstance(first, Quantized):
        return _cast(node, graph, first)
    if operator in _MOVES and (unit := _common_unit(node)) is not None:
        moved = lowering(node.reading([_plain(value) for value in node.inputs]), graph)
        parts = moved if isinstance(moved, tuple) else (moved,)
        return tuple(_counted(part, unit) if isinstance(part, Wire) else part for part in parts)
    raise node.unsupported("input 0", f"holds quantised integers; lanner cannot compute {node.operator} on these")


def _counted(x: Wire, unit: Unit) -> Quantized:
    """A value as what integers in a unit stand for."""
    return Quantized(x.name, x.shape, unit, batch=x.batch, merged=x.merged)


@lowers("QuantizeLinear")
def lower_quantize(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``QuantizeLinear`` to the saturation of its integers; the result has x's shape.

    Raises:
        UnsupportedOpError: If it has several scales, or its type is not one of integers.
    """
    x, unit = node.wire(0), _unit(node, 1)
    return _saturate(node, graph, x, unit, node.constant(2), node.attr("output_dtype", 0))


@lowers("DequantizeLinear")
def lower_dequantize(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``DequantizeLinear``: the result is x, or ``(x - zero) * scale`` where x holds integers as they are.

    So are those of an input, and of a table that an input's integers look up.

    Raises:
        UnsupportedOpError: If x is quantised in another unit, or its integers are in several.
    """
    x = node.inputs[0]
    if not isinstance(x, Wire) or holds_integers(x):
        return _read(node, 0)
    unit = _unit(node, 1)
    return graph.scale(graph.shift(x, -unit.zero), cast(float, unit.scale))


@lowers("QLinearConv")
def lower_qlinear_conv(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``QLinearConv``, a ``Conv`` whose result saturates.

    Shapes: as of ``Conv``; the weights have one scale, or one per output channel.

    Raises:
        UnsupportedOpError: If a unit is not constant, or as ``Conv``.
    """
    x, weight = _read(node, 0), _weight(node, 3, 0)
    bias = node.constant(8)
    if bias is not None:
        bias = _real(bias, np.ravel(_scales(node, 1)) * np.ravel(_scales(node, 4)), 0.0)
    y = _as_float(node, graph, "Conv", [x, weight, bias])
    return _saturate(node, graph, y, _unit(node, 6), node.constant(7))


@lowers("QLinearMatMul")
def lower_qlinear_matmul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``QLinearMatMul``, a ``MatMul`` by a constant whose result saturates.

    Raises:
        UnsupportedOpError: If a unit is not constant, or as ``MatMul``.
    """
    y = _as_float(node, graph, "MatMul", [_read(node, 0), _weight(node, 3, -1)])
    return _saturate(node, graph, y, _unit(node, 6), node.constant(7))


@lowers("com.microsoft.QGemm")
def lower_qgemm(node: Node, graph: GraphBuilder) -> Wire:
    """Lower onnxruntime's ``QGemm``, a ``Gemm`` whose result saturates, or is real where no unit is given for it.

    Raises:
        UnsupportedOpError: If ``alpha`` is not 1, a unit is not constant, or as ``Gemm``.
    """
    node.require("alpha", 1.0)
    x, weight = _read(node, 0), _weight(node, 3, 0 if node.attr("transB", 0) else 1)
    bias = node.constant(6) if len(node.inputs) > 6 else None
    if bias is not None:
        bias = _real(bias, np.ravel(_scales(node, 1)) * np.ravel(_scales(node, 4)), 0.0)
    y = _as_float(node, graph, "Gemm", [x, weight, bias])
    if len(node.inputs) < 8 or node.inputs[7] is None:
        return y
    return _saturate(node, graph, y, _unit(node, 7), node.constant(8))


@lowers("com.microsoft.QLinearAdd")
def lower_qlinear_add(node: Node, graph: GraphBuilder) -> Wire:
    """Lower onnxruntime's ``QLinearAdd``, an ``Add`` whose result saturates.

    Raises:
        UnsupportedOpError: If a unit is not constant, or as ``Add``.
    """
    terms = [_read(node, at) if isinstance(node.inputs[at], Wire) else _weight(node, at, -1) for at in (0, 3)]
    return _saturate(node, graph, _as_float(node, graph, "Add", terms), _unit(node, 6), node.constant(7))


@lowers("com.microsoft.QLinearGlobalAveragePool")
def lower_qlinear_global_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower onnxruntime's ``QLinearGlobalAveragePool``.

    Raises:
        UnsupportedOpError: If a unit is not constant, or channels are last.
    """
    node.require("channels_last", 0)
    y = _as_float(node, graph, "GlobalAveragePool", [_read(node, 0)])
    return _saturate(node, graph, y, _unit(node, 3), node.constant(4))


@lowers("DynamicQuantizeLinear")
def lower_dynamic_quantize(node: Node, graph: GraphBuilder) -> tuple[Wire, ...]:  # noqa: ARG001 - adds nothing
    """Lower ``DynamicQuantizeLinear``, whose range is that of its input: nothing saturates, and the result is x.

    Its scale and zero point are taken by the operators that undo them: ``MatMulInteger``, ``ConvInteger`` and ``Mul``.
    """
    x, source = node.wire(0), node.name
    one = np.array(1.0, np.float32)
    return (
        Quantized(x.name, x.shape, Unit(None, 0, source)),
        DynamicScale(f"{source}.scale", (), source, one),
        DynamicZero(f"{source}.zero", (), source),
    )


@lowers("MatMulInteger", "ConvInteger")
def lower_integer_product(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MatMulInteger`` and ``ConvInteger`` by constant integers; the sums count in x's unit.

    Raises:
        UnsupportedOpError: If x is not quantised, its zero point is another, or as ``MatMul`` and ``Conv``.
    """
    x = node.inputs[0]
    if not isinstance(x, Quantized):
        raise node.unsupported("input 0", "must be a quantised value")
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    dynamic = isinstance(zero, DynamicZero) and zero.source == x.unit.source
    if not dynamic and (isinstance(zero, Wire) or _integer(zero) != x.unit.zero or x.unit.scale is None):
        raise node.unsupported("input 2", "is not the zero point of input 0")
    operator, axis = ("MatMul", -1) if node.operator == "MatMulInteger" else ("Conv", 0)
    weight = _real(cast(NDArray[np.generic], node.constant(1)), np.array(1.0), _zeros(node, 3), axis)
    y = _as_float(node, graph, operator, [_plain(x), weight])
    return _counted(y, Unit(x.unit.scale, 0, x.unit.source))


def _cast(node: Node, graph: GraphBuilder, x: Quantized) -> Wire:
    """Integers as floats: of a known scale, real values over it; else they wait for the product with their scale.

    Raises:
        UnsupportedOpError: If the type is one of truth values, or has too few bits for other integers.
    """
    to = node.attr("to", onnx.TensorProto.FLOAT)
    if to not in (*FLOATS, *_WIDE):
        name = onnx.TensorProto.DataType.Name(to)
        raise node.unsupported("to", f"is {name}, which quantised integers may not fit", "cast them to INT32")
    if x.unit.scale is None or to in _WIDE:
        return x
    steps = graph.multiply_constant(x, np.array(1.0 / x.unit.scale, np.float32))
    return graph.add_constant(steps, np.array(x.unit.zero, np.float32)) if x.unit.zero else steps


#: Types that hold all quantised integers, and sums of their products.
_WIDE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def _scaled(node: Node, graph: GraphBuilder) -> Wire:
    """A product with the scale of a value that is quantised by its own range."""
    scale = next((value for value in node.inputs if isinstance(value, DynamicScale)), None)
    other = next((value for value in node.inputs if value is not scale), None)
    if scale is not None and isinstance(other, np.ndarray):
        factor = scale.factor * other.astype(np.float32)
        return DynamicScale(node.name, (), scale.source, factor)
    if scale is not None and isinstance(other, Quantized) and other.unit == Unit(None, 0, scale.source):
        factor = scale.factor if scale.factor.size > 1 else scale.factor.reshape(())
        return graph.multiply_constant(_real_values(other), factor)
    raise node.unsupported("inputs", f"hold quantised integers; lanner cannot compute {node.operator} on these")


def _read(node: Node, index: int) -> Wire:
    """The real values of a quantised input, whose scale and zero point follow it."""
    x = node.inputs[index]
    if not isinstance(x, Quantized):
        raise node.unsupported(f"input {index}", "must be a quantised value")
    if x.unit != _unit(node, index + 1):
        raise node.unsupported(f"input {index + 1}", "differs from what quantised the value")
    return _real_values(x)


def _unit(node: Node, index: int) -> Unit:
    """The unit that two inputs give: one scale, and one zero point or none."""
    scale = _scales(node, index)
    zero = node.constant(index + 1) if index + 1 < len(node.inputs) else None
    if scale.size != 1:
        raise node.unsupported(f"input {index}", "holds several scales; one for the whole value is supported")
    return Unit(float(scale.reshape(())), _integer(zero))


def _scales(node: Node, index: int) -> NDArray[np.float64]:
    return node.weight(index).astype(np.float64)


def _zeros(node: Node, index: int) -> NDArray[np.float64] | float:
    zero = node.constant(index) if index < len(node.inputs) else None
    return 0.0 if zero is None else np.asarray(zero, np.float64)


def _integer(zero: object) -> int:
    return 0 if zero is None else int(np.asarray(zero).reshape(-1)[0])


def _weight(node: Node, index: int, axis: int) -> NDArray[np.float32]:
    """The real values of quantised weights, of one scale or of one along an axis."""
    weight = node.constant(index)
    if weight is None:
        raise node.unsupported(f"input {index}", "is absent")
    return _real(weight, _scales(node, index + 1), _zeros(node, index + 2), axis)


def _real(
    integers: NDArray[np.generic], scale: NDArray[np.float64], zero: NDArray[np.float64] | float, axis: int = -1
) -> NDArray[np.float32]:
    def along(values: NDArray[np.float64]) -> NDArray[np.float64]:
        if values.size == 1 or integers.ndim < 2:
            return values.reshape(-1) if integers.ndim else values.reshape(())
        return values.reshape([-1 if side == axis % integers.ndim else 1 for side in range(integers.ndim)])

    real = (integers.astype(np.float64) - along(np.asarray(zero))) * along(np.asarray(scale))
    return real.reshape(integers.shape).astype(np.float32)


def _saturate(
    node: Node, graph: GraphBuilder, x: Wire, unit: Unit, zero: NDArray[np.generic] | None, kind: int = 0
) -> Quantized:
    """What the integers of a unit can hold of real values."""
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None and kind:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    if dtype.kind not in "iu" or unit.scale is None:
        raise node.unsupported("output 0", f"is of type {dtype}; integers are supported")
    limits = np.iinfo(dtype.str)
    x = _between(graph, x, (limits.min - unit.zero) * unit.scale, (limits.max - unit.zero) * unit.scale)
    return _counted(x, unit)


def _between(graph: GraphBuilder, x: Wire, low: float, high: float) -> Wire:
    """Add ``min(max(x, low), high)``, which fixed point does from 0."""
    if low == 0.0:
        return graph.add_node("Clip", (x,), x.shape, {"min": 0.0, "max": high})
    above = _between(graph, graph.add_constant(x, np.array(-low, np.float32)), 0.0, high - low)
    return graph.add_constant(above, np.array(low, np.float32))


def _as_float(node: Node, graph: GraphBuilder, operator: str, inputs: Sequence[Value | None]) -> Wire:
    """What the float operator's lowering makes of real inputs."""
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, proto.domain = operator, ""
    lowering = find_lowering(operator)
    lowered = lowering(Node(proto, inputs), graph) if lowering is not None else None
    if not isinstance(lowered, Wire):
        raise node.unsupported("output 0", "is not supported")
    return lowered


def _plain(value: Value | None) -> Value | None:
    """A quantised value's real values; any other value itself."""
    return _real_values(value) if isinstance(value, Quantized) else value


def _real_values(x: Quantized) -> Wire:
    return Wire(x.name, x.shape, batch=x.batch, merged=x.merged)


def _common_unit(node: Node) -> Unit | None:
    """The one unit of all that a node moves; None where there are several, or constants are joined to the values."""
    moved = node.inputs if node.operator == "Concat" else node.inputs[:1]
    units = {value.unit if isinstance(value, Quantized) else None for value in moved}
    secrets = [value for value in node.inputs if isinstance(value, Wire)]
    return units.pop() if len(units) == 1 and len(secrets) == len(moved) else None


#: Operators whose lowerings read quantised values.
_OWN = {
    *("DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"),
    *("com.microsoft.QGemm", "com.microsoft.QLinearAdd", "com.microsoft.QLinearGlobalAveragePool"),
}

#: Operators that mean the same for integers as for the real values that they stand for.
_MOVES = {
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather", "Concat", "Identity"),
    *("MaxPool", "DepthToSpace", "SpaceToDepth"),
}
