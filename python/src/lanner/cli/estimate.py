"""``lanner estimate``: what a prediction will take, before anyone pays it."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lanner.cli.arguments import add_compile_options, read_limits
from lanner.cli.calibration import load_calibration
from lanner.cli.compile_model import compile_file
from lanner.cli.output import Output, duration, size
from lanner.errors import LannerError, MisuseError
from lanner.estimate import Estimate, PhaseEstimate, estimate
from lanner.manifest import Manifest
from lanner.model import load
from lanner.network import Network, read_network
from lanner.options import MODES

NAME = "estimate"
HELP = "tell what a prediction will take: seconds, bytes, rounds, memory and material, by phase and layer"

#: As ``--mode``: every mode.
ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "model", type=Path, metavar="MODEL.lanner|MODEL.public|MODEL.onnx", help="an ONNX file needs --calibration"
    )
    add_compile_options(parser, other_modes={ALL: "each of them, to compare, for an ONNX file"})
    parser.add_argument(
        "--network",
        metavar="NAME",
        default="loopback",
        help="between the parties: loopback, lan, wan or FILE.toml (default: loopback)",
    )


def run(options: Namespace, output: Output) -> int:
    """Estimate a compiled model, or what an ONNX file becomes in one mode or in each."""
    network = read_network(options.network)
    if options.model.suffix == ".onnx":
        return _run_onnx(options, network, output)
    if options.mode is not None:
        raise MisuseError(
            "--mode cannot change a compiled model", where=str(options.model), fix="estimate the ONNX file"
        )
    found = estimate(_manifest(options), network, state_dir=options.state_dir, **read_limits(options))
    _show(found, output)
    output.document(found.document)
    return 0


def _manifest(options: Namespace) -> Manifest:
    if options.model.suffix == ".public":
        return Manifest.read(options.model)
    return load(options.model, **read_limits(options)).manifest


def _run_onnx(options: Namespace, network: Network, output: Output) -> int:
    if options.calibration is None:
        raise MisuseError(
            "--calibration is missing", where="lanner estimate", fix="give typical samples, 32 or more, as a .npy file"
        )
    samples = load_calibration(options.calibration, options)
    modes = [mode for mode in MODES if mode != "auto"] if options.mode == ALL else [options.mode]
    found: dict[str, Estimate] = {}
    refused: dict[str, LannerError] = {}
    for mode in modes:
        chosen = Namespace(**{**vars(options), "mode": mode})
        try:
            with output.progress(f"compiling {options.model.name}") as advance:
                model = compile_file(chosen, samples, options.calibration, options.model.stem, advance)
        except LannerError as error:
            if len(modes) == 1:
                raise
            refused[str(mode)] = error
            continue
        limits = read_limits(options)
        found[model.manifest.mode] = estimate(model.manifest, network, state_dir=options.state_dir, **limits)
    if len(modes) == 1:
        (alone,) = found.values()
        _show(alone, output)
        output.document(alone.document)
        return 0
    _compare(found, network, output)
    for mode, refusal in refused.items():
        output.say(f"mode {mode} does not take it: {refusal}")
    output.document(
        {
            "network": network.name,
            "modes": {mode: estimated.document for mode, estimated in found.items()},
            "refused": {mode: refusal.document() for mode, refusal in refused.items()},
        }
    )
    return 0


def _show(found: Estimate, output: Output) -> None:
    """Phases, layers and memory of one model, for people."""
    output.table(("phase", "", "time", "bytes", "rounds"), [_phase_row(name, found) for name in _PHASES], _title(found))
    rows = [
        (
            layer.name,
            layer.protocol,
            _time(layer.offline),
            _time(layer.online),
            size(layer.offline.bytes + layer.online.bytes),
            layer.offline.rounds + layer.online.rounds,
            size(layer.client_material + layer.server_material),
        )
        for layer in found.layers
    ]
    output.table(("layer", "protocol", "offline", "online", "bytes", "rounds", "material of both"), rows)
    reasons = {layer.protocol: layer.reason for layer in found.layers}
    output.section("Why these protocols", list(reasons.items()))
    output.section("Memory", [(name.replace("_", " "), size(count)) for name, count in _memory(found).items()])
    _warn_of_untimed(found, output)
    output.say(f"times are of {found.machine}; lanner doctor --calibrate measures this machine")


def _warn_of_untimed(found: Estimate, output: Output) -> None:
    lacking = sorted({layer.protocol for layer in found.layers if not layer.timed})
    if lacking:
        output.warn(f"there are no times of {', '.join(lacking)}: what these compute counts as none, mode {found.mode}")


def _compare(found: Mapping[str, Estimate], network: Network, output: Output) -> None:
    """A row for each mode, for people."""
    rows = [
        (
            mode,
            *(_time(phase) for phase in (one.setup, one.offline, one.online)),
            size(one.setup.bytes),
            size(one.offline.bytes),
            size(one.online.bytes),
            one.offline.rounds + one.online.rounds,
            size(_held(one, "server")),
            size(_held(one, "client")),
        )
        for mode, one in found.items()
    ]
    for one in found.values():
        _warn_of_untimed(one, output)
    phases = ("set-up", "offline", "online")
    columns = ("mode", *phases, *(f"{phase} bytes" for phase in phases), "rounds", "server holds", "client holds")
    output.table(columns, rows, f"Over {network.describe()}")


def _phase_row(name: str, found: Estimate) -> tuple[object, ...]:
    phase: PhaseEstimate = getattr(found, name)
    often = "once per session" if name == "setup" else "per request"
    return name, often, _time(phase), size(phase.bytes), phase.rounds


def _time(phase: PhaseEstimate) -> str:
    return duration(phase.seconds)


def _title(found: Estimate) -> str:
    return f"Mode {found.mode} over {found.network.describe()}"


def _memory(found: Estimate) -> dict[str, int]:
    return {name: count for name, count in found.memory.items() if count}


def _held(found: Estimate, party: str) -> int:
    """Bytes that a party holds for a session with one prediction."""
    of_party = (count for name, count in found.memory.items() if name.startswith(party) or name == "layout_bytes")
    return sum(of_party)


_PHASES: tuple[str, ...] = ("setup", "offline", "online")
