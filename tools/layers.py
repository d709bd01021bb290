"""Checks that dependencies between the crates point downwards only.

    python tools/layers.py [ROOT]

The layers are those of docs/architecture.md. A crate may depend on crates of lower layers, on the siblings
named in ``SIDEWAYS``, and, in its tests, on ``testkit``. Crates that protocols are made of know no socket,
thread or clock: their sources may not name ``std::net``, ``std::thread`` or ``std::time`` outside tests.

Inside a crate, files may not use one another in a circle but for those in ``KNOWN_CIRCLES``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rust_uses import circles, uses

LAYERS: dict[str, frozenset[str]] = {
    "ground": frozenset({"process", "wire", "primitives", "ring", "text"}),
    "leaves": frozenset({"bfv", "ot", "gc", "dpf"}),
    "seam": frozenset({"step"}),
    "families": frozenset({"local", "packed", "coefficient", "yao", "transfers", "tabula", "spectral", "hardened"}),
    "composition": frozenset({"protocol"}),
    "compile": frozenset({"network", "graph", "quantize", "plan"}),
    "parties": frozenset({"net", "store", "session"}),
    "facade": frozenset({"lanner"}),
    "faces": frozenset({"lanner-py", "lanner-wasm"}),
}
"""From the lowest layer to the highest; crates by the name of their folder."""

SIDEWAYS = frozenset(
    {
        ("hardened", "coefficient"),
        ("hardened", "yao"),
        ("primitives", "process"),
        ("wire", "process"),
        ("transfers", "yao"),
        ("tabula", "transfers"),
        ("graph", "network"),
        ("plan", "network"),
        ("quantize", "graph"),
        ("quantize", "network"),
        ("session", "net"),
        ("session", "store"),
        ("store", "net"),
    }
)
"""The only arrows inside a layer, from, to."""

NARROWED: dict[str, frozenset[str]] = {
    "network": frozenset(),  # A model's arithmetic without any cryptography.
    "graph": frozenset({"network"}),
    "quantize": frozenset({"graph", "network"}),
    "net": frozenset({"process", "wire"}),  # A transport knows frames, not what is in them.
}
"""Crates that may use less than their layer allows."""

KNOWN_CIRCLES: dict[str, tuple[int, ...]] = {
    "bfv": (17, 2),
    "gc": (7, 2),
    "graph": (17,),
    "lanner": (4, 2),
    "lanner-py": (2,),
    "net": (2,),
    "network": (7,),
    "ot": (6,),
    "plan": (10, 2),
    "quantize": (2, 2),
    "ring": (16,),
    "session": (2, 2),
    "store": (3, 2, 2),
}
"""How many files each circle of a crate has that stands until somebody breaks it: take away what is broken."""

TEST_ONLY = "testkit"

WORLDLESS_LAYERS = ("ground", "leaves", "seam", "families", "composition")
WORLDLY = re.compile(r"\b(net|thread|time)\b(?!\w)")


def main() -> int:
    """Print each violation; return 1 if there is one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = [
        *dependency_violations(root),
        *world_violations(root),
        *circle_violations(root),
    ]
    for violation in violations:
        print(violation, file=sys.stderr)
    if not violations:
        print("layers: every dependency points downwards")
    return 1 if violations else 0


def dependency_violations(root: Path) -> Iterator[str]:
    """Yield a sentence for each dependency between crates that the layers do not allow."""
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        crate = manifest.parent.name
        if crate != TEST_ONLY and layer_of(crate) is None:
            yield f"crates/{crate}: in no layer; place it in tools/layers.py and docs/architecture.md"
            continue
        content = tomllib.loads(manifest.read_text(encoding="utf-8"))
        for table, name in internal_dependencies(content):
            if not is_allowed(crate, name, in_tests=table == "dev-dependencies"):
                yield f"crates/{crate}: {table} on {name} does not point downwards"


def internal_dependencies(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (table, crate) for each dependency on a crate of this workspace, for any target."""
    for scope in (manifest, *manifest.get("target", {}).values()):
        for table in ("dependencies", "build-dependencies", "dev-dependencies"):
            for key, value in scope.get(table, {}).items():
                name = value.get("package", key) if isinstance(value, dict) else key
                folder = folder_of(name)
                if folder is not None:
                    yield table, folder


def is_allowed(crate: str, dependency: str, *, in_tests: bool) -> bool:
    """Whether ``crate`` may depend on ``dependency``."""
    if dependency == TEST_ONLY:
        return in_tests
    upper, lower = layer_of(crate), layer_of(dependency)
    if crate == TEST_ONLY:
        return lower == 0
    if upper is None or lower is None:
        return False
    if crate in NARROWED and not in_tests:
        return dependency in NARROWED[crate]
    return lower < upper or (crate, dependency) in SIDEWAYS


def layer_of(crate: str) -> int | None:
    """The height of a crate's layer, 0 for the ground; None if it is in no layer."""
    return next((height for height, crates in enumerate(LAYERS.values()) if crate in crates), None)


def folder_of(package: str) -> str | None:
    """The folder under crates/ of a package's name; None for packages from elsewhere."""
    if package in LAYERS["facade"] | LAYERS["faces"]:
        return package
    return package.removeprefix("lanner-") if package.startswith("lanner-") else None


def circle_violations(root: Path) -> Iterator[str]:
    """Yield a sentence for each circle of a crate's files that is not known, and for each known one that is gone."""
    for source in sorted(root.glob("crates/*/src")):
        crate = source.parent.name
        known = list(KNOWN_CIRCLES.get(crate, ()))
        for circle in circles(uses(source)):
            if len(circle) in known:
                known.remove(len(circle))
                continue
            files = ", ".join(sorted(str(file.relative_to(source)) for file in circle))
            yield f"crates/{crate}: {len(circle)} files use one another in a circle: {files}"
        for size in known:
            yield f"crates/{crate}: no circle of {size} files is left; take it out of KNOWN_CIRCLES in tools/layers.py"


def world_violations(root: Path) -> Iterator[str]:
    """Yield a sentence for each socket, thread or clock in a crate that is to know none."""
    for layer in WORLDLESS_LAYERS:
        for crate in sorted(LAYERS[layer]):
            for source in sorted(root.glob(f"crates/{crate}/src/**/*.rs")):
                if source.stem == "tests" or "tests" in source.parts:
                    continue
                for module in world_modules(source.read_text(encoding="utf-8")):
                    place = source.relative_to(root)
                    yield f"{place}: uses std::{module}, which belongs to net and session"


def world_modules(source: str) -> Iterator[str]:
    """Yield ``net``, ``thread`` or ``time`` for each use of that module outside comments and tests."""
    # Tests stand at the end of a file.
    code = source.split("#[cfg(test)]\nmod ", maxsplit=1)[0]
    code = re.sub(r"//[^\n]*", "", code)
    for match in re.finditer(r"\bstd\s*::\s*", code):
        yield from WORLDLY.findall(_named(code[match.end() :]))


def _named(rest: str) -> str:
    """What a path names right after ``std::``: one module, or those of a braced list, not what is in them."""
    if not rest.startswith("{"):
        return re.match(r"\w*", rest)[0]  # type: ignore[index]  # An empty match is a match.
    depth, names = 0, []
    for word in re.findall(r"[{}]|\w+", rest):
        depth += {"{": 1, "}": -1}.get(word, 0)
        if depth == 0:
            break
        if depth == 1:
            names.append(word)
    return " ".join(names)


if __name__ == "__main__":
    sys.exit(main())
