"""The checker of tools/layers.py against small made-up trees."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

from pathlib import Path

import layers
import pytest

ROOT = Path(__file__).resolve().parents[2]


def add_crate(root: Path, name: str, manifest: str = "", source: str = "") -> None:
    folder = root / "crates" / name
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(manifest)
    (folder / "src" / "lib.rs").write_text(source)


def violations(root: Path) -> list[str]:
    return [*layers.dependency_violations(root), *layers.world_violations(root)]


def test_this_repository_has_no_violation() -> None:
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("crate", "dependency"),
    [
        ("bfv", "ring"),
        ("protocol", "gc"),
        ("plan", "graph"),
        ("session", "net"),
        ("lanner", "session"),
        ("lanner-py", "lanner"),
    ],
)
def test_downward_dependency_is_allowed(tmp_path: Path, crate: str, dependency: str) -> None:
    package = dependency if dependency == "lanner" else f"lanner-{dependency}"
    add_crate(tmp_path, crate, f"[dependencies]\n{package}.workspace = true\n")
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("crate", "package"),
    [
        ("ring", "lanner-bfv"),
        ("ring", "lanner-wire"),
        ("gc", "lanner-ot"),
        ("protocol", "lanner-graph"),
        ("graph", "lanner-ring"),
        ("graph", "lanner-plan"),
        ("net", "lanner-primitives"),
        ("session", "lanner"),
        ("lanner", "lanner-py"),
    ],
)
def test_other_dependency_is_refused(tmp_path: Path, crate: str, package: str) -> None:
    add_crate(tmp_path, crate, f"[dependencies]\n{package}.workspace = true\n")
    assert len(violations(tmp_path)) == 1


def test_renamed_and_target_dependencies_are_seen(tmp_path: Path) -> None:
    manifest = '[target."cfg(unix)".dependencies]\nupward = { package = "lanner-session", path = "../session" }\n'
    add_crate(tmp_path, "bfv", manifest)
    assert len(violations(tmp_path)) == 1


def test_testkit_is_for_tests_only(tmp_path: Path) -> None:
    add_crate(tmp_path, "bfv", "[dev-dependencies]\nlanner-testkit.workspace = true\n")
    assert violations(tmp_path) == []
    add_crate(tmp_path, "ot", "[dependencies]\nlanner-testkit.workspace = true\n")
    assert len(violations(tmp_path)) == 1


def test_crate_in_no_layer_is_refused(tmp_path: Path) -> None:
    add_crate(tmp_path, "helpers")
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "use std::net::TcpStream;",
        "use std::{collections::HashMap, time::Instant};",
        "fn f() { std::thread::spawn(|| ()); }",
        "use std::{\n    io::{self, Read},\n    thread,\n};",
    ],
)
def test_socket_thread_or_clock_below_parties_is_refused(tmp_path: Path, source: str) -> None:
    add_crate(tmp_path, "protocol", source=source)
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "use std::collections::HashMap;\nstruct Share { time: u64 }",
        "// std::thread belongs elsewhere",
        "use std::{sync::Arc, io::{net, Read}};",
        "fn f() {}\n#[cfg(test)]\nmod tests { use std::thread; }",
        "std::thread_local! { static X: u8 = 0; }",
    ],
)
def test_other_sources_are_allowed(tmp_path: Path, source: str) -> None:
    add_crate(tmp_path, "protocol", source=source)
    assert violations(tmp_path) == []


def test_parties_may_use_sockets(tmp_path: Path) -> None:
    add_crate(tmp_path, "net", source="use std::net::TcpStream;")
    assert violations(tmp_path) == []
