"""What one compile option is: its default, its texts, how the command line has it and how the native compiler takes it.

`lanner.options.CompileKeywords` declares each once, as a key with its type and an `Option`. Flags, documents, the
signature and the docstring of `lanner.compile` are made of that.
"""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])

#: A parser, or a part of its help.
Options = argparse.ArgumentParser | argparse._ArgumentGroup

#: The width of docstrings.
WIDTH = 120


@dataclass(frozen=True, slots=True)
class Flag:
    """An option on the command line, under its own name; None where it is not given.

    Attributes:
        help: What changes, its unit and its default.
        metavar: What stands for its value.
        choices: What its value may be; empty where it may be more.
        type: Reads its value.
        outputs: The outputs of which it says more; empty where it goes with all.
        repeated: Whether it may be given more than once, each with a value.
    """

    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    type: Callable[[str], object] | None = None
    outputs: tuple[str, ...] = ()
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """A compile option.

    Attributes:
        doc: What it is, for `lanner.compile`'s docstring.
        default: Its value where it is not given.
        flag: How the command line has it, if it does.
        at: Its place in the native compiler's document; empty for its own name, None where that does not have it.
        written: Makes a value what the document holds.
    """

    doc: str
    default: object = None
    flag: Flag | None = None
    at: tuple[str, ...] | None = ()
    written: Callable[[Any], object] = lambda value: value


def declared(keywords: type) -> dict[str, Option]:
    """The options that a typed dictionary declares, in its order."""
    hints = get_type_hints(keywords, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def document_of(options: Mapping[str, Option], chosen: Mapping[str, object]) -> dict[str, Any]:
    """What the native compiler takes for the chosen options; what is None is left to its own default."""
    document: dict[str, Any] = {}
    for name, value in chosen.items():
        place = options[name].at
        if value is None or place is None:
            continue
        *folders, last = place or (name,)
        within = document
        for folder in folders:
            within = within.setdefault(folder, {})
        within[last] = options[name].written(value)
    return document


def add_flag(parser: Options, name: str, option: Option, default: object = None, choices: Sequence[str] = ()) -> None:
    """Add the flag of an option that has one; `choices` are further ones."""
    flag = option.flag
    if flag is None:
        return
    said: dict[str, Any] = {"default": default, "help": flag.help}
    if option.default is False:
        said["action"] = "store_true"
    else:
        said |= {"metavar": flag.metavar, "type": flag.type, "choices": (*flag.choices, *choices) or None}
        if flag.repeated:
            said["action"] = "append"
    parser.add_argument(f"--{name.replace('_', '-')}", **said)


def takes(keywords: type, options: Mapping[str, Option]) -> Callable[[Function], Function]:
    """Give a function with ``**options`` the signature and the docstring of one that names each of them."""

    def described(function: Function) -> Function:
        plain = inspect.signature(function)
        named = [each for each in plain.parameters.values() if each.kind is not each.VAR_KEYWORD]
        shown = plain.replace(parameters=[*named, *_parameters(keywords, options)])
        function.__dict__["__signature__"] = shown
        head, raises, tail = (function.__doc__ or "").partition("\n\n    Raises:")
        if raises:
            function.__doc__ = "".join([head, *(f"\n{entry}" for entry in _entries(options)), raises, tail])
        return function

    return described


def _parameters(keywords: type, options: Mapping[str, Option]) -> Iterator[inspect.Parameter]:
    for name, option in options.items():
        # The text of `Annotated[TYPE, Option(...)]`.
        text = keywords.__annotations__[name].__forward_arg__
        kind = text.removeprefix("Annotated[").partition(", Option(")[0]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=kind)


def _entries(options: Mapping[str, Option]) -> Iterator[str]:
    for name, option in options.items():
        yield textwrap.fill(
            f"{name}: {option.doc}",
            WIDTH,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
