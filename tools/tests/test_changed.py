"""Which crates `make check` tests."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import changed


def test_a_crate_with_several_changes_is_named_once() -> None:
    files = ["crates/ring/src/lib.rs", "crates/ring/tests/ntt.rs", "crates/bfv/Cargo.toml", "attacks/src/lib.rs"]
    files.append("research/src/lib.rs")
    assert changed.crates(files) == ["attacks", "bfv", "research", "ring"]


def test_what_is_in_no_crate_names_none() -> None:
    assert changed.crates(["README.md", "python/src/lanner/model.py", "docs/src/x.md", "crates/README.md"]) == []


def test_the_native_module_is_left_out() -> None:
    assert changed.crates(["crates/lanner-py/src/lib.rs"]) == []
