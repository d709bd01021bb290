"""Which of a file's outputs is computed, and the scores behind it."""

from __future__ import annotations

import onnx

from lanner.errors import MisuseError, ModelError, UnsupportedOpError
from lanner.heads import Ending
from lanner.onnx.classes import Constants
from lanner.onnx.ending import End, find_end
from lanner.onnx.registry import find_lowering

#: Outputs of these types are labels: whole numbers or text.
_LABELS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.STRING)


def find_scores(graph: onnx.GraphProto, constants: Constants, wanted: str | None, output_name: str | None) -> End:
    """The end of the network with the scores to compute; output ``value`` takes nothing off.

    Args:
        graph: The file's graph.
        constants: Its initializers.
        wanted: The output policy that the owner chose, if any.
        output_name: The output that the owner names, if any.

    Raises:
        MisuseError: If there is no such output.
        ModelError: If there is none, or there are several and none is named.
        UnsupportedOpError: If ``value`` is wanted of an end that is not computed in private.
    """
    output = choose_output(graph, constants, output_name)
    end = find_end(graph, output, constants)
    if wanted != "value" or end.scores == output:
        return end
    if end.head.ending is Ending.SIGMOID and find_lowering("Sigmoid") is not None:
        return End(output)
    taken = end.operators[0].op_type if end.operators else "label"
    raise UnsupportedOpError(
        f"output value is what the network gives, and its final {taken} is not computed in private",
        where=f"output {output}",
        fix="choose label or logits, or export the network without it",
    )


def choose_output(graph: onnx.GraphProto, constants: Constants, wanted: str | None = None) -> str:
    """The name of the output to compute.

    Of several outputs one is taken without being named where the others are labels of the same scores, as
    those of scikit-learn's classifiers are.

    Args:
        graph: The file's graph.
        constants: Its initializers.
        wanted: The output that the owner names, if any.

    Raises:
        MisuseError: If there is no output `wanted`.
        ModelError: If there is none, or there are several and none is named.
    """
    outputs = [output.name for output in graph.output]
    shown = ", ".join(outputs)
    if wanted is not None:
        if wanted not in outputs:
            raise MisuseError(f"the model has no output {wanted}", where="--output-name", fix=f"give one of {shown}")
        return wanted
    if not outputs:
        raise ModelError("the model has no output", fix="export it again")
    chosen = outputs[0] if len(outputs) == 1 else _of_scores(graph, constants)
    if chosen is None:
        raise ModelError(
            f"the model has {len(outputs)} outputs ({shown}), and one is computed",
            fix=f"name it, as in --output-name {outputs[0]}",
        )
    return chosen


def _of_scores(graph: onnx.GraphProto, constants: Constants) -> str | None:
    """The output that all others are labels beside; of several the one that is no label itself."""
    ends = {output.name: find_end(graph, output.name, constants) for output in graph.output}
    found = [output for output in graph.output if _are_beside(graph, ends, output.name)]
    found.sort(key=lambda output: output.type.tensor_type.elem_type in _LABELS)
    return found[0].name if found else None


def _are_beside(graph: onnx.GraphProto, ends: dict[str, End], output: str) -> bool:
    """Whether all other outputs follow from scores that this one depends on, too."""
    needed = {output}
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
    needed.add(ends[output].scores)
    return all(end.scores in needed - {name} for name, end in ends.items() if name != output)
