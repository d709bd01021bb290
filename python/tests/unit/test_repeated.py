"""Names of a loop's steps, told together."""

from __future__ import annotations

from lanner.cli.repeated import FEW, together


def test_names_that_differ_in_numbers_are_one_from_a_few_on() -> None:
    steps = [f"lstm_1/t{step}/sums" for step in range(FEW + 1)]
    names = ["input", *steps, "gemm_2", "lstm_1/t0/c.Add", "gemm_3"]
    assert together(names) == [
        ("input", [0]),
        (f"lstm_1/t0..{FEW}/sums", list(range(1, FEW + 2))),
        ("gemm_2", [FEW + 2]),
        ("lstm_1/t0/c.Add", [FEW + 3]),
        ("gemm_3", [FEW + 4]),
    ]


def test_names_of_different_kinds_stay_apart() -> None:
    names = [f"conv{number}" for number in range(FEW + 1)] * 2
    kinds = ["layer"] * (FEW + 1) + ["rescale"] * (FEW + 1)
    found = [(f"conv0..{FEW}", list(range(start, start + FEW + 1))) for start in (0, FEW + 1)]
    assert together(names, kinds) == found


def test_numbers_that_differ_are_told_apart() -> None:
    names = [f"frames.Slice{number}.t{2 * number}" for number in (7, 3, 12, 5)]
    assert together(names) == [("frames.Slice3..12.t6..24", [0, 1, 2, 3])]
    assert together([]) == []
