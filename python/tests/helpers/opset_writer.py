"""Writes ONNX nodes in the form that a given opset wants: what was an attribute in one is an input in the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[np.generic]


class OpsetWriter:
    """Collects nodes and constants of one model.

    Args:
        opset: The opset to write, 7 or later.
        as_nodes: Whether constants are Constant nodes instead of initializers.
    """

    def __init__(self, opset: int, *, as_nodes: bool = False) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self._as_nodes = as_nodes
        self._count = 0

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:  # noqa: ANN401
        """Add a node; returns its first output's name, which is also the node's, numbered from the operator."""
        names = [self._name(operator) for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=names[0], **attributes))
        return names[0]

    def constant(self, value: Array) -> str:
        """Add a constant."""
        name = self._name("constant")
        if self._as_nodes:
            tensor = numpy_helper.from_array(value, name)
            self.nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        else:
            self.constants[name] = value
        return name

    def floats(self, value: object) -> str:
        """A float32 constant."""
        return self.constant(np.asarray(value, np.float32))

    def integers(self, value: object) -> str:
        """An int64 constant."""
        return self.constant(np.asarray(value, np.int64))

    def clip(self, x: str, low: float, high: float) -> str:
        """Clip."""
        if self.opset < 11:
            return self.node("Clip", x, min=low, max=high)
        return self.node("Clip", x, self.floats(low), self.floats(high))

    def dropout(self, x: str) -> str:
        """Dropout, which does nothing here; in old files with a mask that nobody reads."""
        if self.opset < 12:
            return self.node("Dropout", x, outputs=2, ratio=0.25)
        return self.node("Dropout", x, self.floats(0.25), outputs=2)

    def pad(self, x: str, before: Sequence[int], after: Sequence[int], value: float) -> str:
        """Pad with a constant."""
        pads = [*before, *after]
        if self.opset < 11:
            return self.node("Pad", x, mode="constant", pads=pads, value=value)
        return self.node("Pad", x, self.integers(pads), self.floats(value))

    def reduce(self, operator: str, x: str, axes: Sequence[int], keepdims: int) -> str:
        """ReduceMean or ReduceMax."""
        if self.opset < 18:
            return self.node(operator, x, axes=axes, keepdims=keepdims)
        return self.node(operator, x, self.integers(axes), keepdims=keepdims)

    def upsample(self, x: str, scales: Sequence[float]) -> str:
        """Nearest elements, each as often as its axis' scale says."""
        if self.opset < 9:
            return self.node("Upsample", x, mode="nearest", scales=scales)
        if self.opset < 11:
            return self.node("Upsample" if self.opset == 9 else "Resize", x, self.floats(scales), mode="nearest")
        return self.node("Resize", x, self.floats([]), self.floats(scales), mode="nearest")

    def slice(self, x: str, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], step: int) -> str:
        """Slice; opsets before 10 have no steps."""
        if self.opset < 10:
            return self.node("Slice", x, axes=axes, starts=starts, ends=ends)
        steps = self.integers([step] * len(axes))
        return self.node("Slice", x, self.integers(starts), self.integers(ends), self.integers(axes), steps)

    def split(self, x: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Split into parts of the given sizes."""
        inputs, attributes = [x], {"axis": axis}
        if self.opset < 13:
            attributes["split"] = list(sizes)  # type: ignore[assignment]
        else:
            inputs.append(self.integers(sizes))
        self.node("Split", *inputs, outputs=len(sizes), **attributes)
        return list(self.nodes[-1].output)

    def with_axes(self, operator: str, x: str, axes: Sequence[int]) -> str:
        """Squeeze or Unsqueeze."""
        if self.opset < 13:
            return self.node(operator, x, axes=axes)
        return self.node(operator, x, self.integers(axes))

    def model(self, shape: Sequence[int | str], output: str, *, listed: bool) -> onnx.ModelProto:
        """The model with input ``x`` of a shape with its batch axis; `listed` initializers are inputs, too."""
        inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
        if listed:
            inputs += [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                for name, value in self.constants.items()
            ]
        leave = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        leave.type.tensor_type.shape.SetInParent()
        initializers = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, [leave], initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=3 if listed else 8)

    def _name(self, operator: str) -> str:
        self._count += 1
        return f"{operator.lower()}_{self._count}"
