"""Which of a file's outputs is computed, and the scores behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx

from lanner.errors import MisuseError, ModelError, UnsupportedOpError, option_named, spelled
from lanner.heads import Ending
from lanner.onnx.classes import Constants
from lanner.onnx.ending import End, check_rounding, find_end, find_root, find_source
from lanner.onnx.registry import find_lowering

#: Shows the same numbers by their classes' names.
_MAP = "ZipMap"

#: Outputs of these types are labels: whole numbers or text.
_LABELS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.STRING)


def find_ends(graph: onnx.GraphProto, constants: Constants, wanted: str | None, names: Sequence[str] = ()) -> list[End]:
    """The ends of the outputs that the owner names, or of the one that is computed where none is named.

    Raises:
        MisuseError: If there is no such output, or several are named and another policy than ``value`` is wanted.
        ModelError: As `find_scores`.
        UnsupportedOpError: As `find_scores`.
    """
    if len(names) <= 1:
        return [find_scores(graph, constants, wanted, next(iter(names), None))]
    if wanted not in (None, "value"):
        raise MisuseError(
            f"output {wanted} is of one output's scores, and {len(names)} are named",
            where=option_named("output_name"),
            fix="choose value, which reveals all of them, or name one",
        )
    return [find_scores(graph, constants, "value", name) for name in names]


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
    output = choose_output(graph, constants, output_name, wanted)
    end = find_end(graph, output, constants)
    check_rounding(end, output)
    if output_name is None and len(graph.output) > 1 and _of_scores(graph, constants) is not None:
        others = [find_end(graph, other.name, constants) for other in graph.output if other.name != output]
        ending = _common_ending([end, *others]) or end.head.ending
        end = replace(end, head=replace(end.head, ending=ending), beside=others)
    if wanted != "value" or end.scores == output:
        return end
    refused = _not_computed(end, output)
    if refused is None:
        last = end.operators[-1]
        return End(last.input[0] if last.op_type == _MAP else output)
    names = [other.name for other in graph.output]
    others = [name for name in names if _not_computed(find_end(graph, name, constants), name) is None]
    another = spelled(f", or another output with ⟦output_name={others[0]}⟧") if others else ""
    raise UnsupportedOpError(
        f"output value is what the network gives, and its final {refused} is not computed in private",
        where=f"output {output}",
        fix=f"choose label or logits{another}, or export the network without it",
    )


def _not_computed(end: End, output: str) -> str | None:
    """What of the end that leads to an output no protocol computes, if anything is."""
    if not end.operators:
        # A classifier makes the label beside the scores.
        return None if end.scores == output else "label"
    refused = [node.op_type for node in end.operators if node.op_type != _MAP and find_lowering(node.op_type) is None]
    return refused[0] if refused else None


def choose_output(
    graph: onnx.GraphProto, constants: Constants, wanted: str | None = None, policy: str | None = None
) -> str:
    """The name of the output to compute.

    Of several outputs one is taken without being named where all are label, probabilities and scores of one another,
    as those of scikit-learn's classifiers are. Where such a label is no choice of the largest probability, it is the
    label that is computed, but for output ``value``.

    Args:
        graph: The file's graph.
        constants: Its initializers.
        wanted: The output that the owner names, if any.
        policy: The output policy that the owner chose, if any.

    Raises:
        MisuseError: If there is no output `wanted`.
        ModelError: If there is none, or there are several and none is named.
    """
    outputs = [output.name for output in graph.output]
    shown = ", ".join(outputs)
    if wanted is not None:
        if wanted not in outputs:
            what = f"the model has no output {wanted}"
            raise MisuseError(what, where=option_named("output_name"), fix=f"give one of {shown}")
        return wanted
    if not outputs:
        raise ModelError("the model has no output", fix="export it again")
    chosen = outputs[0] if len(outputs) == 1 else _of_scores(graph, constants)
    chosen = chosen or _of_estimator(graph, constants, policy)
    if chosen is None:
        raise ModelError(
            f"the model has {len(outputs)} outputs ({shown}), and one is computed",
            fix=spelled(
                f"name one, as in ⟦output_name={_told_most(graph)}⟧, or several with commas, as in ⟦output=value⟧ "
                f"⟦output_name={','.join(outputs)}⟧"
            ),
        )
    return chosen


def _of_estimator(graph: onnx.GraphProto, constants: Constants, policy: str | None) -> str | None:
    """Of label and numbers, as scikit-learn's converter names them, the label if that is picked from scores."""
    names = tuple(output.name for output in graph.output)
    if names not in _ESTIMATORS:
        return None
    label, numbers = names
    if not _picks(find_end(graph, label, constants)):
        return None
    if policy != "probability":
        return numbers if policy == "value" else label
    if find_end(graph, numbers, constants).head.ending in (Ending.SIGMOID, Ending.SOFTMAX):
        return numbers
    raise MisuseError(
        "the file's label is picked from votes, distances or decisions, which are no probabilities",
        where="output probability",
        fix=f"choose label, or value for {numbers} as the file has it",
    )


#: Outputs of scikit-learn's converter: of classifiers, of those that give scores of decisions, and of clusters.
_ESTIMATORS = (("label", "probabilities"), ("output_label", "output_probability"), ("label", "scores"))


def _told_most(graph: onnx.GraphProto) -> str:
    """The output that is most likely of use: the first one of numbers, for labels follow from them."""
    numbers = [output.name for output in graph.output if output.type.tensor_type.elem_type not in _LABELS]
    return str(numbers[0] if numbers else graph.output[0].name)


def _of_scores(graph: onnx.GraphProto, constants: Constants) -> str | None:
    """The output that tells what the scores of all are; of several the one that is no label itself."""
    ends = {output.name: find_end(graph, output.name, constants) for output in graph.output}
    ending = _common_ending(list(ends.values()))
    if ending is None or any(end.rounding is not None for end in ends.values()):
        return None
    roots = {name: find_root(graph, end.scores, constants) for name, end in ends.items()}
    labelled = {roots[name] for name, end in ends.items() if end.operators}
    # Beside its label a linear classifier of two classes shows the score of the second.
    columns = {name for name in ends if find_source(graph, ends[name].scores, constants) in labelled}
    if len({root for name, root in roots.items() if name not in columns}) != 1:
        return None
    found = [output for output in graph.output if output.name not in columns]
    found.sort(
        key=lambda output: (ends[output.name].head.ending is Ending.NONE, output.type.tensor_type.elem_type in _LABELS)
    )
    return found[0].name if found else None


def _common_ending(ends: list[End]) -> Ending | None:
    """What several outputs of the same scores end in together; None where they contradict each other."""
    endings = {end.head.ending for end in ends} - {Ending.NONE}
    picked = any(end.head.ending is Ending.NONE and _picks(end) for end in ends)
    if picked or len(endings) > 1:
        # A label or a probability tells that the quantities are scores.
        endings -= {Ending.REGRESSION}
    if endings <= {Ending.SIGMOID, Ending.ONE_AGAINST_REST} and endings and (picked or len(endings) > 1):
        # The label is the largest score's, so the classes exclude each other.
        return Ending.ONE_AGAINST_REST
    return None if len(endings) > 1 else next(iter(endings), Ending.NONE)


def _picks(end: End) -> bool:
    return any(node.op_type == "ArgMax" for node in end.operators)
