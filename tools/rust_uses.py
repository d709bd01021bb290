"""Which file of a Rust crate uses which other, by the paths that its sources name.

A path is followed through re-exports to the file that defines the item, so a ``mod.rs`` that only gathers names
is nobody's user. Tests, comments and strings do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ModulePath = tuple[str, ...]
"""The names from the root of a crate to a module; empty for the root."""

ROOTS = ("crate", "self", "super")


@dataclass
class Module:
    """A file of a crate, as far as its paths say."""

    file: Path
    code: str
    names: dict[str, ModulePath] = field(default_factory=dict)
    """What ``use`` brings in by name, as absolute paths in the crate."""
    shown: set[str] = field(default_factory=set)
    """Those of :attr:`names` that it re-exports."""
    globs: list[ModulePath] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)


def uses(source: Path) -> dict[Path, set[Path]]:
    """For each file of a crate's ``src`` folder, the other files that it uses."""
    modules = read_modules(source)
    return {module.file: set(used_files(path, modules)) - {module.file} for path, module in modules.items()}


def read_modules(source: Path) -> dict[ModulePath, Module]:
    """The modules of a crate that are no tests, by path."""
    modules: dict[ModulePath, Module] = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if "tests" in parts:
            continue
        path = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        modules[path] = Module(file, without_tests(file.read_text(encoding="utf-8")))
    for path, module in modules.items():
        for shown, brought in declarations(module.code):
            for name, target in leaves(brought):
                absolute = from_root(target, path, modules)
                if absolute is None:
                    continue
                if name == "*":
                    module.globs.append(absolute)
                else:
                    module.names[name] = absolute
                    if shown:
                        module.shown.add(name)
    return modules


def without_tests(source: str) -> str:
    """The code of a file without comments, strings and the tests at its end."""
    code = re.sub(r'"(?:\\.|[^"\\])*"', '""', re.sub(r"//[^\n]*", "", source))
    return re.split(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{", code, maxsplit=1)[0]


def declarations(code: str) -> Iterator[tuple[bool, str]]:
    """Each ``use``: whether it is a re-export, and what it names."""
    for match in re.finditer(r"(?m)^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", code):
        yield match[1] is not None, re.sub(r"\s+", " ", match[2]).strip()


def leaves(brought: str, above: ModulePath = ()) -> Iterator[tuple[str, ModulePath]]:
    """The names that a ``use`` brings, with the path of each."""
    head, brace, rest = brought.partition("{")
    path = (*above, *(part.strip() for part in head.split("::") if part.strip()))
    if brace:
        for part in comma_separated(rest.rstrip()[:-1]):
            yield from leaves(part, path)
        return
    last, _, renamed = path[-1].partition(" as ")
    target = path[:-1] if last == "self" and len(path) > 1 else (*path[:-1], last)
    yield renamed or target[-1], target[:-1] if last == "*" else target


def comma_separated(text: str) -> Iterator[str]:
    """The parts of a braced list, which may have lists in them."""
    depth, part = 0, ""
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part.strip():
                yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def from_root(path: ModulePath, module: ModulePath, modules: dict[ModulePath, Module]) -> ModulePath | None:
    """A path that a module names as one from the crate's root; None if it leads out of the crate."""
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("self", "super"):
        here = module
        for number, part in enumerate(path):
            if part == "super":
                here = here[:-1]
            elif part != "self":
                return (*here, *path[number:])
        return here
    if (*module, path[0]) in modules:
        return (*module, *path)
    return None


def used_files(path: ModulePath, modules: dict[ModulePath, Module]) -> Iterator[Path]:
    """The files that a module's paths lead to."""
    module = modules[path]
    for name, target in module.names.items():
        # A name of a module counts by what is said behind it.
        if name not in module.shown and target not in modules:
            yield from defining_file(target, modules)
    for target in module.globs:
        if target in modules:
            yield modules[target].file
    body = re.sub(r"(?m)^[ \t]*(?:pub(?:\([^)]*\))?\s+)?use\s+[^;]+;", "", module.code)
    for match in re.finditer(r"(?<![\w:])((?:\w+::)+\w+)", body):
        named = tuple(match[1].split("::"))
        if named[0] in module.names:
            target = (*module.names[named[0]], *named[1:])
        elif named[0] in ROOTS or (*path, named[0]) in modules:
            absolute = from_root(named, path, modules)
            if absolute is None:
                continue
            target = absolute
        else:
            continue
        yield from defining_file(target, modules)


def defining_file(target: ModulePath, modules: dict[ModulePath, Module]) -> Iterator[Path]:
    """The file of a path's item, through re-exports; nothing for a path that ends at a module."""
    here: ModulePath = ()
    for number, part in enumerate(target):
        if (*here, part) in modules:
            here = (*here, part)
            continue
        module, rest = modules[here], target[number + 1 :]
        if part in module.names and module.names[part] != target[: number + 1]:
            yield from defining_file((*module.names[part], *rest), modules)
        elif f"macro_rules! {part}" in module.code or defines(module.code, part):
            yield module.file
        else:
            sources = [modules[glob] for glob in module.globs if glob in modules]
            yield next((one.file for one in sources if defines(one.code, part)), module.file)
        return


def defines(code: str, name: str) -> bool:
    """Whether a file defines an item of this name."""
    return re.search(rf"\b(?:struct|enum|trait|fn|type|const|static|mod|union)\s+{re.escape(name)}\b", code) is not None


def circles(arrows: dict[Path, set[Path]]) -> list[frozenset[Path]]:
    """The sets of files of which each uses every other, directly or not (Tarjan's algorithm)."""
    found: list[frozenset[Path]] = []
    number: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []

    def visit(file: Path) -> None:
        number[file] = low[file] = len(number)
        stack.append(file)
        for used in sorted(arrows.get(file, ())):
            if used not in number:
                visit(used)
                low[file] = min(low[file], low[used])
            elif used in stack:
                low[file] = min(low[file], number[used])
        if low[file] == number[file]:
            cut = stack.index(file)
            circle = frozenset(stack[cut:])
            del stack[cut:]
            if len(circle) > 1:
                found.append(circle)

    for file in sorted(arrows):
        if file not in number:
            visit(file)
    return found
