"""Reads the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from lanner.cli import (
    bench,
    compile_model,
    completion,
    debug,
    demo,
    doctor,
    estimate,
    evaluate,
    export,
    gateway,
    inspect,
    keygen,
    page,
    pairings,
    predict,
    prepare,
    run,
    serve,
)
from lanner.cli.build import build_facts
from lanner.cli.output import Output
from lanner.errors import MisuseError

COMMANDS = (
    *(demo, compile_model, inspect, estimate, export, keygen, serve, page, prepare, predict, gateway),
    *(evaluate, run, debug, bench, pairings, doctor, completion),
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are lanner's, and whose paths have a name."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(*arguments, **options)
        self.register("type", Path, _path)

    def error(self, message: str) -> NoReturn:
        """Raise the usage error instead of printing it, so that it is reported like every other."""
        raise MisuseError(message, where=self.prog, fix=f"see {self.prog} --help")


def _path(text: str) -> Path:
    """A path; an empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; give the path of a file or folder")
    return Path(text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; the result's `command` runs them.

    Raises:
        MisuseError: If they are not understood.
        SystemExit: After printing the help.
    """
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        # Told by the command that does not know them: its help lists what it takes.
        getattr(options, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.version:
        options.command = _print_version
    if "command" not in options:
        parser.error("no command is given")
    return options


#: What is typed behind each command, in the simplest case.
EXAMPLES = {
    "demo": "--mode cheetah",
    "compile": "net.onnx -o net.lanner --calibration samples.npy",
    "inspect": "net.lanner",
    "estimate": "net.lanner --network wan",
    "export": "net.lanner -o net.public",
    "keygen": "net.public -o net.keys",
    "serve": "net.lanner --listen 0.0.0.0:7400",
    "page": "wss://hospital.example -o page --pin sha256:... --model net=607d...",
    "prepare": "hospital.example:7400 --count 10 --pin sha256:...",
    "predict": "hospital.example:7400 picture.png --pin sha256:...",
    "gateway": "hospital.example:7400 --pin sha256:...",
    "evaluate": "net.lanner --data test.npz",
    "run": "net.lanner picture.png",
    "debug": "net.lanner picture.png",
    "bench": "networks --mode cheetah --only mnist_d",
    "pairings": "",
    "doctor": "",
    "completion": "bash",
}


def build_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="lanner", description="Private neural-network inference between two parties.", allow_abbrev=False
    )
    add_common(parser, top=True)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in COMMANDS:
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=f"Example: lanner {module.NAME} {EXAMPLES[module.NAME]}".rstrip(),
            allow_abbrev=False,
        )
        module.add_arguments(command)
        add_common(command, top=False)
        command.set_defaults(command=module.run, parser=command)
    return parser


def add_common(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """The options that stand before or after the command alike."""

    def default(value: object) -> object:
        # The command's own parser must not overwrite what was given before the command.
        return value if top else argparse.SUPPRESS

    group = parser.add_argument_group("everywhere")
    group.add_argument(
        "--json", action="store_true", default=default(False), help="print one JSON document instead of tables"
    )
    group.add_argument(
        "--state-dir",
        metavar="D",
        default=default(None),
        help="directory for keys and material (default: $LANNER_HOME, else the platform's)",
    )
    group.add_argument(
        "--version",
        action="store_true",
        default=default(False),
        help="print the version; with --json also how it was built",
    )


def _print_version(_options: argparse.Namespace, output: Output) -> int:
    facts = build_facts()
    if output.json:
        output.document(facts)
    else:
        output.write(f"lanner {facts['version']}\n")
    return 0
