"""Writes a sequential PyTorch network as a small ONNX file, one node per layer."""

from __future__ import annotations

from typing import Any

import onnx
from networks import Square
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

OPSET = 17


GREY = (1, 28, 28)


def to_onnx(model: nn.Sequential, name: str, sample: tuple[int, int, int] = GREY) -> onnx.ModelProto:
    """Return ``model`` with input ``image`` ``(batch, *sample)`` and output ``logits`` ``(batch, classes)``.

    Raises:
        TypeError: if a layer has no translation here, or the last one is not linear.
    """
    last = model[-1]
    if not isinstance(last, nn.Linear):
        raise TypeError(f"the last layer is {type(last).__name__}, not Linear")
    graph = _Graph()
    value = "image"
    for layer in model:
        value = graph.add(layer, value)
    graph.nodes[-1].output[0] = "logits"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", *sample])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", last.out_features])
    body = helper.make_graph(graph.nodes, name, [image], [logits], graph.initializers)
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="lanner")
    # The oldest file format that carries this operator set, so that old readers can open the file.
    proto.ir_version = 8
    onnx.checker.check_model(proto, full_check=True)
    return proto


class _Graph:
    """Nodes and initializers under construction; layers are named by kind and position among their kind."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.counts: dict[str, int] = {}

    def add(self, layer: nn.Module, source: str) -> str:
        """Append ``layer`` reading value ``source``; return the name of its output value."""
        match layer:
            case nn.Conv2d():
                return self._node("Conv", "conv", [source], layer, {
                    "kernel_shape": list(layer.kernel_size),
                    "strides": list(layer.stride),
                    "pads": [*layer.padding, *layer.padding],
                })  # fmt: skip
            case nn.Linear():
                return self._node("Gemm", "fc", [source], layer, {"transB": 1})
            case nn.ReLU():
                return self._node("Relu", "relu", [source])
            case Square():
                return self._node("Mul", "square", [source, source])
            case nn.MaxPool2d():
                side = [layer.kernel_size, layer.kernel_size]
                return self._node("MaxPool", "pool", [source], None, {"kernel_shape": side, "strides": side})
            case nn.Flatten():
                return self._node("Flatten", "flatten", [source])
        raise TypeError(f"no ONNX operator is given for {type(layer).__name__}")

    def _node(
        self,
        operator: str,
        stem: str,
        inputs: list[str],
        weights: nn.Conv2d | nn.Linear | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> str:
        self.counts[stem] = self.counts.get(stem, 0) + 1
        name = f"{stem}{self.counts[stem]}"
        if weights is not None:
            for kind, values in (("weight", weights.weight), ("bias", weights.bias)):
                inputs = [*inputs, self._tensor(f"{name}.{kind}", values)]
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **(attributes or {})))
        return name

    def _tensor(self, name: str, values: Tensor | None) -> str:
        if values is None:
            raise TypeError(f"{name} is missing: every layer here has a bias")
        self.initializers.append(numpy_helper.from_array(values.detach().numpy(), name))
        return name
