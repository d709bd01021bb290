"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

from lanner.client import DEFAULT_TIMEOUT, Client, ClientKeywords
from lanner.embeddings import beside, read_tables
from lanner.errors import MisuseError
from lanner.files import check_file, why
from lanner.limits import limits_document
from lanner.manifest import Manifest
from lanner.option import Options, add_flag
from lanner.options import OPTIONS
from lanner.progress import SetUpWatch
from lanner.trust import Trust, parse_address

#: What holds inputs, for help texts.
KINDS = "a .npy, .npz, .json, .csv, .png or .jpg file, a .txt file of texts, one a line, or a folder of such files"


def add_csv_option(parser: Options) -> None:
    """The option that says what the first line of a CSV file is; None where it is not given."""
    parser.add_argument(
        "--csv-header",
        action=argparse.BooleanOptionalAction,
        help="skip the first line of each .csv file, a header; --no-csv-header reads it as an input (default: use a "
        "header with the names of the model's columns, reject any other header)",
    )


def csv_header(options: argparse.Namespace, *paths: Path | None) -> bool | None:
    """What `add_csv_option` was given, for reading files of these paths; no path is None.

    Raises:
        MisuseError: If it was given, and no path is that of a ``.csv`` file or of a folder.
    """
    stated: bool | None = options.csv_header
    if stated is not None and not any(path and (path.suffix.lower() == ".csv" or path.is_dir()) for path in paths):
        raise MisuseError("--csv-header goes with .csv files, and none is given", fix="leave it out")
    return stated


_INPUTS, _FILE, _RESULT, _COST = "inputs", "what is read of the file", "what clients learn", "protocols and costs"

#: In which part of the help an option is, other than the last.
GROUPS = {
    **dict.fromkeys(("calibration", "input_range", "image", "text", "columns"), _INPUTS),
    **dict.fromkeys(("output_name", "shape", "fix"), _FILE),
    **dict.fromkeys(
        ("output", "k", "digits", "classes", "reveal_saturation", "public_preprocessing", "public_embeddings"), _RESULT
    ),
}


def add_compile_options(parser: argparse.ArgumentParser, other_modes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Options that decide how an ONNX model is compiled; None where they are not given.

    `other_modes` are further choices of ``--mode``, and what they are.
    """
    groups = {title: parser.add_argument_group(title) for title in dict.fromkeys((*GROUPS.values(), _RESULT, _COST))}
    inputs = groups[_INPUTS]
    inputs.add_argument(
        "--calibration", metavar="X.npy", type=Path, help=f"typical samples: {KINDS}; 32 or more are advised"
    )
    add_csv_option(inputs)
    for name, option in OPTIONS.items():
        group = groups[GROUPS.get(name, _COST)]
        if name == "mode":
            _add_mode(group, others=other_modes)
        else:
            add_flag(group, name, option)


def add_truncate_option(parser: argparse.ArgumentParser) -> None:
    """The option that lets texts be cut."""
    parser.add_argument(
        "--truncate",
        action="store_true",
        help="cut texts to the number of tokens that the model reads (default: reject longer ones)",
    )


def cutting(manifest: Manifest, options: argparse.Namespace) -> Manifest:
    """The public half as ``--truncate`` says."""
    return manifest.cutting() if options.truncate else manifest


def add_kernel_times_option(parser: argparse.ArgumentParser, default: str) -> None:
    """The option that names a table of kernel times; None where it is not given. `default` says which is used then."""
    parser.add_argument(
        "--kernel-times",
        metavar="TABLE",
        help="table of kernel times: stored (this machine's, in the state directory), shipped (another machine's, in"
        " the package), measure (measure this machine now), or FILE.json (default: $LANNER_KERNEL_TIMES, else "
        f"{default})",
    )


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what a prediction may take; None where they are not given."""
    for name in LIMITS:
        add_flag(parser, name, OPTIONS[name])


class LimitKeywords(TypedDict):
    """The given limits as keywords of `lanner.load`, `lanner.Client` and others.

    Attributes:
        max_memory: Bytes, or a size with its unit; None where it was not given.
        max_seconds: Seconds; None where they were not given.
    """

    max_memory: str | None
    max_seconds: int | None


#: The usual limits.
NO_LIMITS_GIVEN = LimitKeywords(max_memory=None, max_seconds=None)


def limit_arguments(limits: LimitKeywords) -> list[str]:
    """Limits as arguments of another command."""
    given = (("--max-memory", limits["max_memory"]), ("--max-seconds", limits["max_seconds"]))
    return [word for name, value in given if value is not None for word in (name, str(value))]


def read_limits(options: argparse.Namespace) -> LimitKeywords:
    """The limits that the options give.

    Raises:
        MisuseError: If one is not one.
    """
    limits_document(options.max_memory, options.max_seconds)
    return LimitKeywords(max_memory=options.max_memory, max_seconds=options.max_seconds)


#: The options that decide what of an ONNX file is accepted.
ACCEPTING = ("output", "output_name", "shape", "fix", "columns", "public_embeddings")


def add_accepting_options(parser: argparse.ArgumentParser) -> None:
    """The options that decide what of an ONNX file is accepted; None where they are not given."""
    for name in ACCEPTING:
        add_flag(parser, name, OPTIONS[name])


def add_protocol_options(parser: argparse.ArgumentParser) -> None:
    """The protocols of a command that compiles networks of its own."""
    _add_mode(parser, "auto")
    add_flag(parser, "rounding", OPTIONS["rounding"])


def _add_mode(parser: Options, default: str | None = None, others: Mapping[str, str] = MappingProxyType({})) -> None:
    option = OPTIONS["mode"]
    if option.flag is not None:
        said = "".join(f"; {name}: {what}" for name, what in others.items())
        flag = replace(option.flag, help=f"{option.flag.help.removesuffix(')')}{said})")
        add_flag(parser, "mode", replace(option, flag=flag), default, [*others])


def check_outputs(options: argparse.Namespace) -> None:
    """Check that no option is given that says more of another output than the one chosen.

    Raises:
        MisuseError: If one is.
    """
    for name, option in OPTIONS.items():
        outputs = () if option.flag is None else option.flag.outputs
        if outputs and getattr(options, name) is not None and options.output not in outputs:
            raise MisuseError(
                f"--{name} goes with --output {' or '.join(outputs)} alone", fix="give both, or leave it out"
            )


#: What a prediction may take, as the keywords of `lanner.compile`.
LIMITS = ("max_memory", "max_seconds")

#: What decides how a model is compiled and has a flag, as the keywords of `lanner.compile`.
COMPILE_OPTIONS = tuple(name for name, option in OPTIONS.items() if option.flag is not None and name not in LIMITS)


def refuse_compile_options(options: argparse.Namespace) -> None:
    """Check that nothing is asked of a model that is compiled already.

    Raises:
        MisuseError: Naming the first option that decides how a model is compiled, if one is given.
    """
    for name in ("calibration", *COMPILE_OPTIONS):
        if getattr(options, name) is not None:
            raise MisuseError(
                f"--{name.replace('_', '-')} cannot change a compiled model",
                where=str(options.model),
                fix="compile the ONNX model again",
            )


def compile_keywords(options: argparse.Namespace) -> dict[str, object]:
    """The given compile options as the keywords of `lanner.compile`.

    Raises:
        MisuseError: If the file of class names cannot be read, or as `check_outputs`.
    """
    check_outputs(options)
    keywords = {name: getattr(options, name) for name in (*COMPILE_OPTIONS, *LIMITS)}
    keywords["network"], keywords["state_dir"] = options.network, options.state_dir
    # Of the commands that compile, some have no such option.
    keywords["kernel_times"] = getattr(options, "kernel_times", None)
    keywords["classes"] = None if options.classes is None else read_classes(options.classes)
    return {name: value for name, value in keywords.items() if value is not None}


def read_classes(path: Path) -> list[str]:
    """Read class names, one a line; trailing blank lines do not count.

    Raises:
        MisuseError: If the file cannot be read.
    """
    check_file(path, MisuseError)
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").rstrip().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"cannot be read ({why(error)})", where=str(path), fix="give one class name a line") from None


def add_trust_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which server is trusted."""
    group = parser.add_argument_group("trust")
    group.add_argument("--pin", metavar="sha256:...", help="the server's fingerprint, which serve printed")
    group.add_argument(
        "--ca",
        metavar="FILE",
        type=Path,
        help="trust servers with a certificate of these authorities, instead of --pin",
    )
    group.add_argument(
        "--cert", metavar="F", type=Path, help="the client's own certificate, if the server requires one"
    )
    group.add_argument("--key", metavar="F", type=Path, help="the private key of --cert")
    group.add_argument(
        "--pin-model", metavar="H", help="accept only this model: its commitment, or a file that export wrote"
    )
    group.add_argument("--insecure-plaintext", action="store_true", help="do without TLS; the server must do the same")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server as the command line names it, checked before anything is sent.

    Attributes:
        address: ``HOST:PORT``.
        model: The model's name, or None for the server's only one.
        trust: What makes the server trusted.
        public: The model's public half, where the user has it.
        proxy: The HTTP proxy on the way, or ``none``; None for what the environment says.
        timeout: Seconds without a byte after which to give up.
        limits: What the model may take.
        keys: The client's keys, where it has some of its own.
        embeddings: The tables beside the model's public half, where the user has them.
    """

    address: str
    model: str | None
    trust: Trust
    public: Manifest | None
    proxy: str | None
    timeout: float
    limits: LimitKeywords
    keys: Path | None
    embeddings: Path | None = None

    def connect(self, state_dir: Path, watch: SetUpWatch | None = None) -> Client:
        """Connect, shake hands and do the set-up, unless material is kept in a state directory."""
        return Client(self.address, state_dir=state_dir, watch=watch, **self.keywords())

    def keywords(self) -> ClientKeywords:
        """The model, what makes the server trusted, and what the model may take, as `lanner.Client` takes them."""
        trust = self.trust
        return ClientKeywords(
            model=self.model,
            pin=trust.pin,
            ca=trust.ca,
            cert=trust.cert,
            key=trust.key,
            pin_model=trust.pin_model,
            insecure_plaintext=trust.insecure_plaintext,
            proxy=self.proxy,
            timeout=self.timeout,
            keys=self.keys,
            embeddings=self.embeddings,
            **self.limits,
        )


def add_peer_arguments(parser: argparse.ArgumentParser) -> None:
    """The server's address, the model and the trust options."""
    parser.add_argument("address", metavar="HOST[:PORT]", help="the server (default port: 7400)")


def add_peer_options(parser: argparse.ArgumentParser, *, several_models: bool = False) -> None:
    """The options that go with `add_peer_arguments`; ``--model`` may be repeated where there may be several."""
    if several_models:
        parser.add_argument(
            "--model", metavar="NAME", action="append", help="which of the server's models; may be repeated"
        )
    else:
        parser.add_argument("--model", metavar="NAME", help="which of the server's models")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        default=DEFAULT_TIMEOUT,
        help=f"seconds to wait for the server (default: {DEFAULT_TIMEOUT:g})",
    )
    parser.add_argument(
        "--proxy",
        metavar="URL|none",
        help="connect through this HTTP proxy, http://[NAME:PASSWORD@]HOST[:PORT], or through none (default: "
        "$HTTPS_PROXY or $ALL_PROXY, unless $NO_PROXY names the server; localhost and loopback addresses always "
        "connect directly)",
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="KEYS",
        help="reuse the keys in this file, which keygen wrote (default: new keys for each session)",
    )
    add_limit_options(parser)
    add_trust_options(parser)


def read_peer(options: argparse.Namespace) -> Peer:
    """The server that the options name.

    Raises:
        MisuseError: If the address or a trust option is wrong.
        ModelError: If ``--pin-model`` names a file that is no public half, or other tables are beside it.
    """
    if options.timeout <= 0:
        raise MisuseError(f"--timeout is {options.timeout:g}", fix="give a positive number of seconds")
    pinned, public, embeddings = options.pin_model, None, None
    if pinned is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", pinned) and Path(pinned).is_file():
        public = Manifest.read(Path(pinned))
        tables = beside(options.pin_model)
        if tables.is_file() and any(entry.embeddings is not None for entry in public.input.named):
            public, embeddings = public.holding(read_tables(tables), str(tables)), tables
        pinned = public.commitment
    trust = Trust(options.pin, options.ca, options.cert, options.key, pinned, options.insecure_plaintext)
    limits = read_limits(options)
    address = parse_address(options.address)
    return Peer(address, options.model, trust, public, options.proxy, options.timeout, limits, options.keys, embeddings)
