"""Throughput, sessions, estimates and browsers: networks, other than by one prediction of a native client."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanner.cli.on_ray import this_host
from lanner.cli.output import Output, duration, size
from lanner.errors import MisuseError
from lanner.files import why
from lanner.kernel_times import measured_times
from lanner.network import Network
from lanner.options import INTERACTIVE_MODES, Protocols
from lanner.ray.cluster import cluster
from lanner.wording import counted

if TYPE_CHECKING:
    from bench.sessions import Costs
    from bench.throughput import Throughput
    from lanner.benchmarks.cases import Case

#: What a suite gives: the command's exit code, and its rows.
Found = tuple[int, list[dict[str, Any]]]


def run_throughput(
    options: argparse.Namespace, chosen: Sequence[Case], networks: Sequence[Network], output: Output
) -> Found:
    """Images per second of several clients at once."""
    from bench.throughput import loads, loads_on_cluster

    rows: list[Throughput] = []
    each = loads(options.mode) if options.ray is None else loads_on_cluster()
    with output.progress("measuring", len(chosen) * len(networks) * len(each)) as advance:
        for row in _throughput(options, chosen, networks):
            rows.append(row)
            advance(f"{row.name}, {counted(row.clients, 'client')}, {counted(row.inputs, 'input')}")
    columns = ("benchmark", "mode", "network", "clients", "inputs of each", "time", "images a second", "bytes an image")
    shown = [
        (
            row.name,
            row.mode,
            row.network,
            row.clients,
            _inputs(row),
            duration(row.seconds),
            round(row.images_per_second, 1),
            size(row.bytes_per_image),
        )
        for row in rows
    ]
    output.table(columns, shown)
    if options.ray is None:
        output.say(
            "time: from the first request of any client to the last result, set-up included; all on this machine"
        )
    else:
        output.say("time: from the first piece to the last result, once every worker has a session; the server is here")
    return 0, [row.document() for row in rows]


def run_sessions(options: argparse.Namespace, chosen: Sequence[Case], _: Sequence[Network], output: Output) -> Found:
    """What sessions cost a server; nothing is between the parties."""
    from bench.sessions import BUSY, SESSIONS, sessions

    count = SESSIONS if options.sessions is None else options.sessions
    if count < BUSY:
        raise MisuseError(f"--sessions is {count}", fix=f"give {BUSY} or more")
    protocols = Protocols(options.mode, options.rounding, options.precision, options.kept_bits)
    rows: list[Costs] = []
    with output.progress("measuring", len(chosen)) as advance:
        for case in chosen:
            advance(case.name, 0)
            try:
                rows.append(sessions(case, protocols, count))
            except OSError as error:
                raise MisuseError(
                    f"the system does not tell what a process has ({why(error)})", fix="measure on Linux"
                ) from None
            advance()
    output.table(("benchmark", "mode", "of the server", "figure"), [cells for row in rows for cells in _costs(row)])
    output.say(
        "seconds are those of a core, bytes of memory unless something else is said; all clients are on this machine"
    )
    return 0, [row.document() for row in rows]


def run_browser(
    options: argparse.Namespace, chosen: Sequence[Case], networks: Sequence[Network], output: Output
) -> Found:
    """Predictions of a client in headless Chromium."""
    from bench.browser import InBrowser, in_browser
    from bench.chromium import chromium
    from lanner.web.files import is_built

    if not is_built():
        raise MisuseError("the client for browsers is not built", fix="run `make web`")
    if chromium() is None:
        raise MisuseError("there is no Chromium", fix="install it, on Debian by `apt-get install chromium`")
    protocols = Protocols(options.mode, options.rounding, options.precision, options.kept_bits, networks[0])
    rows: list[InBrowser] = []
    with output.progress("measuring", len(chosen)) as advance:
        for case in chosen:
            rows.append(in_browser(case, protocols, options.repeat))
            advance(case.name)
    columns = ("benchmark", "mode", "set-up", "time", "bytes", "memory", "n", "browser")
    shown = [
        (
            row.name,
            row.mode,
            duration(row.setup_seconds),
            duration(row.seconds),
            size(row.bytes),
            size(row.memory),
            row.n,
            row.browser,
        )
        for row in rows
    ]
    output.table(columns, shown)
    output.say(
        "time: a prediction with its preparation, which the client waits for; memory: the module's; all on this machine"
    )
    return 0, [row.document() for row in rows]


def _costs(row: Costs) -> Iterator[tuple[str, str, str, str | None]]:
    """The lines of the table for a network."""
    figures = (
        ("with the model", size(row.loaded)),
        (f"an idle session, of {row.sessions}", size(row.idle)),
        ("its open files", f"{row.idle_descriptors:.1f}"),
        ("its threads", f"{row.idle_threads:.1f}"),
        ("an idle session that resumes a pairing", _told(row.resumed, size)),
        ("a prepared prediction", size(row.prepared)),
        ("a session's begin", duration(row.setup_seconds)),
        ("with uploaded keys", _told(row.uploaded_seconds, duration)),
        ("offline phase", duration(row.offline_seconds)),
        ("online phase", duration(row.online_seconds)),
        ("a session that resumes, with a prediction", _told(row.resumed_seconds, duration)),
        ("received and sent for a set-up", f"{size(row.setup_received)}, {size(row.setup_sent)}"),
        ("received and sent offline", f"{size(row.offline_received)}, {size(row.offline_sent)}"),
        ("received and sent online", f"{size(row.online_received)}, {size(row.online_sent)}"),
        ("on disk for a pairing", _told(row.pairing, size)),
        ("on disk for each prediction kept", _told(row.piece, size)),
        ("on the client's disk for a pairing", _told(row.client_pairing, size)),
        ("on the client's disk for each kept", _told(row.client_piece, size)),
        ("on disk for a client's keys", _told(row.uploaded, size)),
    )
    for what, figure in figures:
        yield row.name, row.mode, what, figure


def _told(figure: float | None, spelt: Callable[[float], str]) -> str | None:
    """A figure for people; None where there is none."""
    return None if figure is None else spelt(figure)


def _throughput(
    options: argparse.Namespace, chosen: Sequence[Case], networks: Sequence[Network]
) -> Iterator[Throughput]:
    from bench.throughput import throughput, throughput_on_cluster

    protocols = [
        Protocols(options.mode, options.rounding, options.precision, options.kept_bits, network) for network in networks
    ]
    if options.ray is None:
        for case in chosen:
            for each in protocols:
                yield from throughput(case, each, each.network)
        return
    with cluster(options.ray):
        for case in chosen:
            yield from throughput_on_cluster(case, protocols[0], this_host(options))


def _inputs(row: Throughput) -> str:
    """The inputs of each client, and how they are asked for."""
    if row.in_turn:
        return f"{row.inputs}, in turn"
    return str(row.inputs) if row.batch == 1 else f"{row.inputs}, {row.batch} a request"


def run_estimates(
    options: argparse.Namespace, chosen: Sequence[Case], networks: Sequence[Network], output: Output
) -> Found:
    """Estimates beside what was measured in every mode, and mode auto beside the best of the others."""
    from bench.estimates import FACTOR, SLOWER, Closeness, beside_best, compare

    rows: list[Closeness] = []
    times = measured_times(None, options.state_dir)
    output.say(times.describe())
    with output.progress("measuring", len(chosen) * len(networks) * len(INTERACTIVE_MODES)) as advance:
        for case in chosen:
            for network in networks:
                for mode in (mode for mode in INTERACTIVE_MODES if mode in case.modes):
                    advance(f"{case.name}, {network.name}, {mode}")
                    rows += compare(case, mode, network, options.repeat, times)
    columns = ("benchmark", "mode", "network", "phase", "estimated", "measured", "factor")
    output.table(
        columns,
        [
            (
                row.name,
                row.mode,
                row.network,
                row.phase,
                duration(row.estimated),
                duration(row.measured),
                round(row.factor, 2),
            )
            for row in rows
        ],
    )
    close = sum(row.factor <= FACTOR for row in rows)
    output.say(f"{close} of {len(rows)} estimates are within a factor of {FACTOR:g}")
    beside = beside_best(rows)
    output.table(
        ("benchmark", "network", "auto by the best single mode"),
        [(name, network, round(ratio, 2)) for (name, network), ratio in beside.items()],
    )
    slow = [place for place, ratio in beside.items() if ratio > SLOWER]
    output.say(
        f"mode auto takes more than {SLOWER:g} times the best single mode in {len(slow)} of {len(beside)} places"
    )
    return (0 if close == len(rows) and not slow else 1), [row.document() for row in rows]
