"""``lanner estimate``: what a prediction will take, before anyone pays it."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lanner.capacity import Fits, Machine
from lanner.cli.arguments import (
    add_compile_options,
    add_kernel_times_option,
    add_trust_options,
    csv_header,
    read_limits,
    refuse_compile_options,
)
from lanner.cli.calibration import load_calibration, require_calibration
from lanner.cli.compile_model import compile_file
from lanner.cli.html import add_html_option, check_page, page, picture
from lanner.cli.output import Output, duration, size
from lanner.cli.written import Written
from lanner.client import DEFAULT_TIMEOUT
from lanner.errors import LannerError, MisuseError, ModelError
from lanner.estimate import Estimate, PhaseEstimate, estimate
from lanner.inputs import Arrays
from lanner.kernel_times import KernelTimes, measured_times
from lanner.limits import parse_bytes
from lanner.manifest import Manifest
from lanner.model import load
from lanner.network import Network, measure_network, read_network
from lanner.options import MODES
from lanner.pictures import draw_estimate, size_of, spoken
from lanner.plots import check_plots, figure
from lanner.prediction import PHASES
from lanner.trust import Trust
from lanner.wording import counted

NAME = "estimate"
HELP = "estimate time, traffic and memory of a prediction before running it"

#: Before a server's address as ``--network``: the network to it.
MEASURE = "measure:"
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
        help="the network between the parties: loopback, lan, wan, FILE.toml, or measure:HOST[:PORT] to measure the "
        "network to a server, with the trust options (default: loopback)",
    )
    for party in ("client", "server"):
        parser.add_argument(
            f"--{party}-cores",
            type=int,
            metavar="N",
            help=f"cores of the {party}'s machine (default: as many as the machine of the kernel times)",
        )
        parser.add_argument(
            f"--{party}-memory",
            metavar="SIZE",
            help=f"memory of the {party}, as in 8GB; estimate reports whether it is enough",
        )
    add_kernel_times_option(parser, "stored, which the first estimate measures in a second")
    add_html_option(parser)
    parser.add_argument(
        "--plot",
        type=Path,
        action=Written,
        metavar="F.png",
        help="draw time and bytes by layer into a .png, .svg or .pdf file (needs matplotlib)",
    )
    add_trust_options(parser)


def run(options: Namespace, output: Output) -> int:
    """Estimate a compiled model, or what an ONNX file becomes in one mode or in each."""
    check_page(options)
    network = _network(options)
    if options.plot is not None:
        if options.mode == ALL:
            raise MisuseError("one mode is drawn, and --mode all has several", where="--plot", fix="give --html")
        check_plots()
    if options.model.suffix != ".onnx":
        refuse_compile_options(options)
        csv_header(options)
        limits = read_limits(options)
        manifest = _manifest(options)
        times = _times(options, output)
        client, server = _machines(options)
        alone = estimate(manifest, network, kernel_times=times, client=client, server=server, **limits)
        return _tell(alone, options, output)
    require_calibration(options, "lanner estimate")
    samples = load_calibration(options.calibration, options)
    # Mode auto chooses by the table by which it is estimated.
    options.kernel_times = _times(options, output)
    if options.mode != ALL:
        return _tell(_compiled(options, options.mode, samples, network, output), options, output)
    found: dict[str, Estimate] = {}
    refused: dict[str, LannerError] = {}
    for mode in MODES:
        try:
            found[mode] = _compiled(options, mode, samples, network, output)
        except (ModelError, MisuseError) as error:
            refused[mode] = error
    if not found:
        raise next(iter(refused.values()))
    with page(options, output, f"{options.model.name} over {network.describe()}"):
        _compare(found, network, output)
        _tell_times(options.kernel_times, output)
        for mode, refusal in refused.items():
            output.say(f"mode {mode}: {refusal}")
        for each in found.values():
            _draw(each, output)
    output.document(
        {
            "network": network.name,
            "kernel_times": options.kernel_times.document(),
            "modes": {mode: estimated.document for mode, estimated in found.items()},
            "refused": {mode: refusal.document() for mode, refusal in refused.items()},
        }
    )
    return 0


def _manifest(options: Namespace) -> Manifest:
    if options.model.suffix == ".public":
        return Manifest.read(options.model)
    return load(options.model, **read_limits(options)).manifest


def _compiled(
    options: Namespace, mode: str | None, samples: Arrays | list[str], network: Network, output: Output
) -> Estimate:
    """What the ONNX file becomes in a mode takes."""
    # Mode auto chooses by the network as it was read or measured.
    chosen = Namespace(**{**vars(options), "mode": mode, "network": network})
    with output.progress(f"compiling {options.model.name}") as advance:
        model = compile_file(chosen, samples, options.calibration, options.model.stem, advance)
    (client, server), times, limits = _machines(options), options.kernel_times, read_limits(options)
    return estimate(model.manifest, network, kernel_times=times, client=client, server=server, **limits)


def _tell(found: Estimate, options: Namespace, output: Output) -> int:
    """Phases, layers and memory of one model."""
    with page(options, output, f"Estimate of a prediction by {found.document['model']}"):
        _show(found, output)
        _draw(found, output)
    if options.plot is not None:
        with figure(options.plot, size_of(len(spoken(found.layers)))) as drawn:
            draw_estimate(drawn, found)
        output.say(f"drawn in {options.plot}")
    output.document(found.document)
    return 0


def _draw(found: Estimate, output: Output) -> None:
    caption = f"Mode {found.mode}: time and bytes of each layer, offline and online."
    picture(output, size_of(len(spoken(found.layers))), caption, lambda drawn: draw_estimate(drawn, found))


def _show(found: Estimate, output: Output) -> None:
    title = f"Mode {found.mode} over {found.network.describe()}"
    output.table(("phase", "", "time", "bytes", "rounds"), [_phase_row(name, found) for name in PHASES], title)
    rows = [
        (
            layer.name,
            layer.protocol,
            _time(layer.offline, timed=layer.timed),
            _time(layer.online, timed=layer.timed),
            size(layer.offline.bytes + layer.online.bytes),
            layer.offline.rounds + layer.online.rounds,
            size(layer.client_material + layer.server_material),
        )
        for layer in found.layers
    ]
    output.table(("layer", "protocol", "offline", "online", "bytes", "rounds", "material of both"), rows, "Layers")
    reasons = {layer.protocol: layer.reason for layer in found.layers}
    output.section("Why these protocols", list(reasons.items()))
    held = [(name.replace("_", " "), size(count)) for name, count in found.memory.items() if count]
    output.section("Memory", held)
    _tell_what_fits(found.fits, output)
    _warn_of_untimed(found, output)
    _tell_times(found.kernel_times, output)


def _times(options: Namespace, output: Output) -> KernelTimes:
    """The table of kernel times that the options name, measured where this machine has none."""
    with output.progress("measuring this machine"):
        return measured_times(options.kernel_times, options.state_dir)


def _tell_times(times: KernelTimes, output: Output) -> None:
    """Say whose kernel times they are."""
    advice = "" if times.table == "calibrated" else "; lanner doctor --calibrate measures this machine more exactly"
    output.say(f"{times.describe()}{advice}")
    if times.note is not None:
        output.warn(times.note)


def _tell_what_fits(fits: Fits, output: Output) -> None:
    if not fits.client:
        output.warn(f"the client has too little memory: a prediction needs {size(fits.client_bytes)} of it")
    if not fits.server:
        output.warn(f"the server has too little memory: a prediction needs {size(fits.server_bytes)} of it")
    elif fits.sessions is not None:
        output.say(f"the server has memory for {counted(fits.sessions, 'session')} with a prediction each")


def _warn_of_untimed(found: Estimate, output: Output) -> None:
    lacking = sorted({layer.protocol for layer in found.layers if not layer.timed})
    if lacking:
        output.warn(f"no measured time for {', '.join(lacking)}: times of mode {found.mode} that need one are omitted")


def _is_timed(found: Estimate) -> bool:
    """Whether the times of all layers are known."""
    return all(layer.timed for layer in found.layers)


def _machines(options: Namespace) -> tuple[Machine, Machine]:
    """The client's and the server's machine as the options describe them."""
    client, server = (
        Machine(
            getattr(options, f"{party}_cores"),
            None if (memory := getattr(options, f"{party}_memory")) is None else parse_bytes(memory),
        )
        for party in ("client", "server")
    )
    return client, server


def _network(options: Namespace) -> Network:
    """The network that the options name, measured if they say so."""
    given = (options.pin, options.ca, options.cert, options.key, options.pin_model, options.insecure_plaintext)
    if options.network.startswith(MEASURE):
        return measure_network(options.network.removeprefix(MEASURE), Trust(*given), DEFAULT_TIMEOUT)
    if any(given):
        raise MisuseError(
            "options that say which server to trust have no meaning without one",
            where=f"--network {options.network}",
            fix=f"give {MEASURE}HOST, or leave them out",
        )
    return read_network(options.network)


def _compare(found: Mapping[str, Estimate], network: Network, output: Output) -> None:
    """A row for each mode, for people."""
    rows = [
        (
            mode,
            _time(one.setup),
            *(_time(phase, timed=_is_timed(one)) for phase in (one.offline, one.online)),
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
    timed = name == "setup" or _is_timed(found)
    return name, often, _time(phase, timed=timed), size(phase.bytes), phase.rounds


def _time(phase: PhaseEstimate, *, timed: bool = True) -> str | None:
    """The time of a phase for people; none where what it computes was never measured."""
    return duration(phase.seconds) if timed else None


def _held(found: Estimate, party: str) -> int:
    """Bytes that a party holds for a session with one prediction."""
    of_party = (count for name, count in found.memory.items() if name.startswith(party) or name == "layout_bytes")
    return sum(of_party)
