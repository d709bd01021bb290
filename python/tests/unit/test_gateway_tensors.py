"""Tensors that a request sends: the values of each type, as JSON and as binary data, and what is none of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanner.errors import InputError
from lanner.gateway.errors import Refused
from lanner.gateway.tensors import DATATYPES, read_tensor

WHOLE = [name for name, dtype in DATATYPES.items() if dtype.kind in "iu"]


def tensor(datatype: str, data: list[Any]) -> dict[str, Any]:
    return {"name": "x", "datatype": datatype, "shape": [len(data)], "data": data}


def refused(datatype: str, data: list[Any]) -> str:
    with pytest.raises(Refused) as caught:
        read_tensor(tensor(datatype, data), None)
    assert caught.value.status == 400
    return caught.value.sentence


@pytest.mark.parametrize("datatype", WHOLE)
def test_both_ends_of_a_whole_type_are_taken_and_what_is_beyond_is_not(datatype: str) -> None:
    ends = np.iinfo(DATATYPES[datatype].str)
    for end in (ends.min, ends.max, float(ends.min), 1.0):
        assert read_tensor(tensor(datatype, [end, 1]), None).tolist() == [np.float32(end), 1]
    near = (ends.min - 1, ends.max + 1) if ends.bits < 64 else ()
    for beyond in (*near, 2.0 * ends.max + 4, -1e30, 1e30):
        assert refused(datatype, [1, beyond]) == (
            f"element [1] of input 'x' is no {datatype}; "
            f"send whole numbers from {ends.min} to {ends.max}, or name another type"
        )


@pytest.mark.parametrize("datatype", WHOLE)
@pytest.mark.parametrize("value", [13.82, 1e-9, float("nan"), float("inf")])
def test_what_is_no_whole_number_is_refused_by_its_place_alone(datatype: str, value: float) -> None:
    sentence = refused(datatype, [1, 1, value, value])
    assert sentence.startswith(f"element [2] of input 'x' is no {datatype}; ")
    assert str(value) not in sentence


@pytest.mark.parametrize("data", [[True, False], [1, 0], [1.0, 0.0]])
def test_truths_are_true_or_false(data: list[Any]) -> None:
    assert read_tensor(tensor("BOOL", data), None).tolist() == [1, 0]


@pytest.mark.parametrize("value", [2, -1, 0.5, 256, float("nan")])
def test_other_numbers_are_no_truths(value: float) -> None:
    assert (
        refused("BOOL", [0, value]) == "element [1] of input 'x' is no BOOL; send true or false, or name another type"
    )


def test_floats_beyond_their_type_are_refused() -> None:
    assert read_tensor(tensor("FP16", [65504, 0.5]), None).tolist() == [65504, 0.5]
    for datatype, beyond in (("FP16", 65520), ("FP16", -1e9), ("FP32", 1e39)):
        assert refused(datatype, [0, beyond]) == (
            f"element [1] of input 'x' is no {datatype}; send numbers within its range, or name another type"
        )
    # A value that is there and not finite is told as such, and what FP64 alone holds by what it is computed with.
    for datatype, value, told in (("FP16", float("inf"), "is inf"), ("FP64", 1e39, "beyond float32")):
        with pytest.raises(InputError, match=told):
            read_tensor(tensor(datatype, [value]), None)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_binary_data_is_what_the_same_values_are_as_json(datatype: str) -> None:
    values = np.array([0, 1, 1], DATATYPES[datatype])
    document = tensor(datatype, values.tolist())
    assert np.array_equal(read_tensor(document, None), read_tensor(document, values.tobytes()))


def test_a_byte_that_is_no_truth_is_refused() -> None:
    with pytest.raises(Refused, match=r"element \[2\] of input 'x' is no BOOL; send true or false"):
        read_tensor(tensor("BOOL", [0, 0, 0]), b"\x00\x01\x02")


@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_floats_of_a_table_may_be_missing(datatype: str) -> None:
    taken = read_tensor(tensor(datatype, [1.5, None, float("nan"), 2]), None, missing=True)
    assert np.array_equal(taken, np.array([1.5, np.nan, np.nan, 2], np.float32), equal_nan=True)
    assert refused(datatype, [1.5, None]) == "the data of input 'x' must be numbers alone"
    with pytest.raises(InputError, match=r"element \[1\] is nan"):
        read_tensor(tensor(datatype, [1.5, float("nan")]), None)


@pytest.mark.parametrize("data", [[1, "2", None], [1, {}, None], [1, [2], None], ["nan", 1]])
def test_what_is_neither_a_number_nor_null_is_refused_of_a_table(data: list[Any]) -> None:
    with pytest.raises(Refused, match=r"numbers alone|equal length"):
        read_tensor(tensor("FP32", data), None, missing=True)


def test_whole_numbers_of_a_table_are_not_missing() -> None:
    with pytest.raises(Refused, match="numbers alone"):
        read_tensor(tensor("INT32", [1, None]), None, missing=True)
