"""The list of smooth activations: what stands on it has no lowering."""

from onnx import defs

from lanner.onnx.registry import find_lowering
from lanner.onnx.smooth import SMOOTH


def test_smooth_operators_are_onnx_operators_without_a_lowering() -> None:
    assert all(defs.has(operator) for operator in SMOOTH)
    assert not any(find_lowering(operator) for operator in SMOOTH)
    assert len(set(SMOOTH)) == len(SMOOTH)
