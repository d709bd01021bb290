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


def add_files(root: Path, crate: str, files: dict[str, str]) -> None:
    for name, source in files.items():
        file = root / "crates" / crate / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)


def test_this_repository_has_no_violation() -> None:
    assert violations(ROOT) == []
    assert list(layers.circle_violations(ROOT)) == []


@pytest.mark.parametrize(
    ("crate", "dependency"),
    [
        ("bfv", "ring"),
        ("step", "gc"),
        ("packed", "step"),
        ("tabula", "transfers"),
        ("protocol", "tabula"),
        ("plan", "network"),
        ("quantize", "graph"),
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
        ("step", "lanner-packed"),
        ("packed", "lanner-coefficient"),
        ("yao", "lanner-transfers"),
        ("packed", "lanner-protocol"),
        ("protocol", "lanner-graph"),
        ("network", "lanner-ring"),
        ("network", "lanner-graph"),
        ("plan", "lanner-graph"),
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


@pytest.mark.parametrize(
    "use",
    [
        "use super::b::B;",
        "use crate::b::{self, B as Other};\nfn f() { b::f() }",
        "use super::{\n    b::{B, C},\n};",
        "use crate::B;",
        "fn f() { crate::b::f() }",
        "use super::b;\nfn f() { b::f() }",
    ],
)
def test_circle_of_files_is_found(tmp_path: Path, use: str) -> None:
    files = {"lib.rs": "mod a;\nmod b;\npub use b::B;\n", "a.rs": use + "\npub struct A;\n"}
    back = {"b.rs": "use super::a::A;\npub struct B;\npub struct C;\npub fn f() {}\n"}
    add_files(tmp_path, "wire", files | back)
    (violation,) = [v for v in layers.circle_violations(tmp_path) if "in a circle" in v]
    assert violation == "crates/wire: 2 files use one another in a circle: a.rs, b.rs"


@pytest.mark.parametrize(
    "use",
    [
        "use super::C;",
        "// crate::b::f()",
        'const B: &str = "crate::b::f";',
        "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        "use super::b;",
    ],
)
def test_what_is_no_use_makes_no_circle(tmp_path: Path, use: str) -> None:
    files = {"lib.rs": "mod a;\nmod b;\nmod c;\npub use b::B;\npub use c::C;\n", "a.rs": use, "c.rs": "pub struct C;"}
    add_files(tmp_path, "wire", files | {"b.rs": "use super::a::A;\npub struct B;\n", "b/tests.rs": "use crate::b::B;"})
    assert list(layers.circle_violations(tmp_path)) == []


def test_known_circle_may_stand_and_has_to_be_struck_out_once_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "KNOWN_CIRCLES", {"wire": (2,)})
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a.rs": "use super::b::B;\npub struct A;",
        "b.rs": "use super::a::A;\npub struct B;",
    }
    add_files(tmp_path, "wire", files)
    assert list(layers.circle_violations(tmp_path)) == []
    add_files(tmp_path, "wire", {"a.rs": "pub struct A;"})
    (violation,) = layers.circle_violations(tmp_path)
    assert "no circle of 2 files is left" in violation
