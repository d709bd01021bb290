"""Writes the page of the public interface, docs/reference-api.md: every name of the package, every command and option.

    python tools/public_api.py           prints the page
    python tools/public_api.py --write   writes it

Names come from ``__all__`` of ``lanner`` and ``lanner.ray`` and from the parser of the command line, so that the page
cannot leave one out. A test compares the two: whoever changes the interface changes the page, where a reader sees it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lanner
import lanner.ray
from lanner.cli.outline import Argument, outline
from lanner.cli.parser import build_parser

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference-api.md"

HEAD = """\
# Public interface

Programs may rely on everything on this page: all names of the Python package, and all commands and options of `lanner`.
`python tools/public_api.py --write` writes this page from the code, and a test compares the two.

Versions follow [Semantic Versioning](https://semver.org/). Before 1.0.0 a minor version may remove or change parts of
the interface, with an entry in the [changelog](../CHANGELOG.md); a patch version may not. Everything else may change at
any time: names with an underscore, modules other than `lanner` itself and `lanner.ray`, and texts for people on either
stream. Documents of `--json`, and returned objects, may gain fields. The wire and the model file have
[versions of their own](reference/versions.md).
"""


def main() -> int:
    """Print or write the page."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    else:
        print(page(), end="")
    return 0


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *python_part(), *command_part()]).rstrip() + "\n"


def python_part() -> Iterator[str]:
    """A section for each public name, in alphabetical order, those of ``lanner.ray`` last."""
    yield "## Python\n"
    yield from described_names("lanner", lanner)
    yield from described_names("lanner.ray", lanner.ray)


def described_names(place: str, module: ModuleType) -> Iterator[str]:
    """A section for each name of a module's ``__all__``."""
    for name in sorted(module.__all__, key=lambda name: (name.lower(), name)):
        yield f"### `{place}.{name}`\n"
        named = getattr(module, name)
        yield first_sentence(named) + "\n"
        yield "```python"
        yield from described_class(name, named) if inspect.isclass(named) else [f"{name}{signature(named)}"]
        yield "```\n"


def described_class(name: str, kind: type[Any]) -> Iterator[str]:
    """A class's constructor, the attributes that its docstring promises, and its public methods and properties."""
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if "__init__" in vars(kind):
        yield f"    {name}{signature(kind)}"
    for attribute in documented_attributes(kind):
        yield f"    {attribute}"
    for member, value in sorted(vars(kind).items()):
        if member.startswith("_") and member != "__enter__":
            continue
        function = getattr(value, "__func__", getattr(value, "func", value))
        if member == "__enter__":
            yield "    with statement"
        elif isinstance(value, property) or hasattr(value, "attrname"):
            yield f"    {member} -> {annotation(getattr(value, 'fget', function))}"
        elif inspect.isfunction(function):
            yield f"    {member}{signature(function)}"


def signature(function: Any) -> str:  # noqa: ANN401 - any callable
    """A function's parameters, but for ``self`` and ``cls``, and what it returns."""
    shown: list[str] = []
    by_name_alone = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind == inspect.Parameter.KEYWORD_ONLY and not by_name_alone:
            by_name_alone = True
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        stars = "**" if parameter.kind == inspect.Parameter.VAR_KEYWORD else ""
        shown.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    returned = "" if inspect.isclass(function) else f" -> {annotation(function)}"
    return f"({', '.join(shown)}){returned}"


def annotation(function: Any) -> str:  # noqa: ANN401 - any callable
    """What a function says it returns."""
    return str(inspect.signature(function).return_annotation)


def documented_attributes(kind: type[Any]) -> list[str]:
    """The names in the section ``Attributes`` of a class's docstring."""
    section = re.search(r"^Attributes:\n((?: .*\n?|\n)*)", inspect.getdoc(kind) or "", re.MULTILINE)
    return re.findall(r"^ {4}(\w+):", section[1], re.MULTILINE) if section else []


def first_sentence(named: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(named) or "").partition("\n\n")[0].split())


def command_part() -> Iterator[str]:
    """What stands before or after every command, and a section for each command."""
    program = outline(build_parser(), "lanner")
    yield "## Command line\n"
    yield "Before or after every command:\n"
    yield from map(described_argument, program.options)
    yield "\nExit codes: 0 when all went well, 130 after Ctrl-C, and of errors:\n"
    yield from (f"- {error.exit_code}: `{error.__name__}`" for error in sorted(errors(), key=lambda e: e.exit_code))
    yield ""
    common = {option.names for option in program.options}
    for command in program.commands:
        yield f"### `lanner {command.name}`\n"
        yield f"{command.help}.\n"
        own = [option for option in command.options if option.names not in common]
        yield from map(described_argument, [*command.positions, *own])
        yield ""


def errors() -> list[type[lanner.LannerError]]:
    """The public classes of errors; what has none of its own is a `LannerError`."""
    named = (getattr(lanner, name) for name in lanner.__all__)
    return [kind for kind in named if inspect.isclass(kind) and issubclass(kind, lanner.LannerError)]


def described_argument(argument: Argument) -> str:
    """A line for an argument or option: how it is written, what it may be, and whether it must be given."""
    value = "{" + ",".join(argument.choices) + "}" if argument.choices else argument.value
    written = " ".join(filter(None, (", ".join(argument.names), value))) + ("..." if argument.repeated else "")
    if argument.names:
        return f"- `{written}`{' (required)' if argument.required else ''}"
    return f"- `{written}`{'' if argument.required else ' (may be left out)'}"


if __name__ == "__main__":
    sys.exit(main())
