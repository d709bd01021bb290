"""What the command line takes, read off its parser: for scripts that complete it and pages that list it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """An option, or an argument by position.

    Attributes:
        names: As it is written, ``-o`` before ``--output``; empty for an argument by position.
        value: What stands for its value in the help; empty for an option that takes none.
        choices: What the value may be; empty where it may be more.
        repeated: Whether it may be given several values.
        required: Whether it must be given.
        help: A sentence without a full stop.
    """

    names: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    repeated: bool
    required: bool
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or the program itself.

    Attributes:
        name: The command's name.
        help: What it does.
        options: In the order of its help.
        positions: Its arguments by position, in order.
        commands: Of the program: what it can do.
    """

    name: str
    help: str
    options: tuple[Argument, ...]
    positions: tuple[Argument, ...]
    commands: tuple[Command, ...]


def outline(parser: argparse.ArgumentParser, name: str, about: str = "") -> Command:
    """Read a parser and those of its commands; what its help hides is left out."""
    shown = [*_shown(parser)]
    return Command(
        name,
        about,
        options=tuple(each for each in shown if each.names),
        positions=tuple(each for each in shown if not each.names),
        commands=tuple(_commands(parser)),
    )


def _shown(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        yield Argument(
            names=tuple(action.option_strings),
            value=value,
            choices=tuple(map(str, action.choices or ())),
            repeated=action.nargs in ("+", "*"),
            required=action.required,
            help=" ".join(formatter._expand_help(action).split()) if action.help else "",
        )


def _commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {entry.dest: entry.help or "" for entry in action._get_subactions()}
            for name, command in action.choices.items():
                yield outline(command, name, helps.get(name, ""))
