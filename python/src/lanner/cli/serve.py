"""``lanner serve``: offer compiled models to clients."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from lanner.cli.arguments import LimitKeywords, add_limit_options, read_limits
from lanner.cli.events import Event, add_log_option
from lanner.cli.log import SessionLog
from lanner.cli.memory import EndedSessions, give_back_large_buffers
from lanner.cli.offered import Offered
from lanner.cli.open_files import allow_open_files
from lanner.cli.output import Output
from lanner.cli.report import input_of
from lanner.cli.stopping import Stopping
from lanner.errors import MisuseError
from lanner.model import Model, load
from lanner.server import DEFAULT_SESSIONS, DEFAULT_TIMEOUT, Server
from lanner.telemetry.journal import Journal, Reader
from lanner.telemetry.readiness import Readiness
from lanner.telemetry.tracing import tracing
from lanner.trust import DEFAULT_PORT

NAME = "serve"
HELP = "serve compiled models over TLS"

#: What traces call the server, where no variable names it.
SERVICE = "lanner-server"

#: Seconds that sessions under way may take to end after SIGTERM.
DRAIN_SECONDS = 30.0

#: How often what became of sessions is logged and counted, in seconds.
LOG_SECONDS = 0.5

#: After how many times without an end the memory of ended sessions is given back.
QUIET_LOOKS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "models",
        nargs="+",
        metavar="[NAME=]MODEL.lanner[@COMMITMENT]",
        help="compiled models; with @COMMITMENT, which `lanner inspect` prints, the server rejects a file with "
        "another model",
    )
    parser.add_argument(
        "--listen",
        default=f"127.0.0.1:{DEFAULT_PORT}",
        metavar="HOST:PORT",
        help=f"address for clients; port 0 chooses a free one (default: 127.0.0.1:{DEFAULT_PORT}, this machine only)",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="F", help="certificate to show (default: a self-signed one)")
    parser.add_argument("--tls-key", type=Path, metavar="F", help="the private key of --tls-cert")
    parser.add_argument(
        "--client-ca", type=Path, metavar="F", help="admit only clients with a certificate of these authorities"
    )
    parser.add_argument(
        "--ban-after",
        type=int,
        metavar="N",
        help="mode hardened: ban a client's key after N failed checks, which no honest client fails (default: 1)",
    )
    parser.add_argument(
        "--metrics",
        metavar="ADDR",
        help="publish metrics at http://HOST:PORT/metrics, and health at /healthz and /readyz",
    )
    parser.add_argument(
        "--metrics-name",
        action="append",
        default=[],
        metavar="HOST",
        help="another host name for --metrics, besides its address and this machine's name; may be repeated",
    )
    parser.add_argument(
        "--max-sessions",
        type=int,
        metavar="N",
        default=DEFAULT_SESSIONS,
        help=f"clients served at once; others are told that the server is busy (default: {DEFAULT_SESSIONS})",
    )
    parser.add_argument(
        "--max-material",
        type=int,
        metavar="BYTES",
        help="memory for material, keys and backlogs of all sessions (default: a quarter of this machine's memory)",
    )
    parser.add_argument(
        "--max-stock",
        type=int,
        metavar="BYTES",
        help="disk space for clients' material and keys; 0 stores none (default: a quarter of the free space, 16 GiB"
        " at most)",
    )
    parser.add_argument(
        "--max-keys",
        type=int,
        metavar="BYTES",
        help="disk space for uploaded keys, of which the last used stay; 0 stores none (default: a quarter of the "
        "free space, 4 GiB at most)",
    )
    parser.add_argument(
        "--share-weights",
        type=Path,
        metavar="DIR",
        help="keep encoded weights in this directory, once for all servers of this machine; as secret as the models",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        default=DEFAULT_TIMEOUT,
        help="seconds of silence within a request after which a session is closed; between requests it is 15 "
        f"minutes, or --timeout if that is longer (default: {DEFAULT_TIMEOUT:g})",
    )
    parser.add_argument(
        "--web",
        metavar="HOST:PORT",
        help="address for browsers, which get a page there; may equal --listen",
    )
    parser.add_argument(
        "--web-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin connect, such as https://page.example; may be repeated",
    )
    parser.add_argument(
        "--web-name",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name under which browsers reach the server, besides its address and this machine's name; may be"
        " repeated",
    )
    parser.add_argument(
        "--web-without-origin",
        action="store_true",
        help="let programs other than browsers connect over WebSocket; they name no origin",
    )
    parser.add_argument(
        "--web-cert", type=Path, metavar="F", help="certificate that browsers accept, for https:// and wss://"
    )
    parser.add_argument("--web-key", type=Path, metavar="F", help="the private key of --web-cert")
    add_log_option(parser)
    add_limit_options(parser)
    parser.add_argument("--insecure-plaintext", action="store_true", help="do without TLS; clients must do the same")
    # For the commands that start a server: it must not outlive them, however they end, and all its clients are theirs.
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, output: Output) -> int:
    """Serve until SIGTERM or Ctrl-C, which drain and exit 0."""
    output.structured = options.log_format == "json"
    give_back_large_buffers()
    allow_open_files(options.max_sessions)
    stopped = Stopping()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    if options.until_stdin_closes:
        threading.Thread(target=_await_end_of_input, args=(stopped,), daemon=True).start()
    server = _server(options)
    _on_interrupt(lambda *_: stopped.set())
    with tracing(SERVICE, output.warn) as spans:
        _serve(server, _Metrics(options.metrics, options.metrics_name), [SessionLog(output), *spans], stopped, output)
    output.tell("stopped", event="stopped")
    return 0


@dataclass(frozen=True, slots=True)
class _Metrics:
    """Where metrics and health are told, if anywhere, and under which names beside the usual ones."""

    address: str | None
    names: Sequence[str]


def _serve(server: Server, metrics: _Metrics, readers: Sequence[Reader], stopped: Stopping, output: Output) -> None:
    """Serve until the event, and tell the readers what becomes of connections."""
    readiness = Readiness()
    with _watched(server, metrics, readiness) as (address, counts):
        journal = Journal(server, [*readers, *counts])
        server.start()
        try:
            readiness.state = "ready"
            output.document({**_document(server), "metrics": address})
            _announce(server, address, output)
            if server.outside_term is not None:
                advice = "clients with --ca reject it, clients with --pin accept it; renew it"
                output.warn(f"the server's certificate: {server.outside_term}; {advice}")
            _wait(stopped, journal, output)
        finally:
            readiness.state = "stopping"
            server.stop(DRAIN_SECONDS if stopped.is_set() else 0.0)
            journal.read()


@contextmanager
def _watched(server: Server, where: _Metrics, readiness: Readiness) -> Iterator[tuple[str | None, Sequence[Reader]]]:
    """Tell metrics and health at an address, if there is one: the address as bound, and what counts connections."""
    if where.address is None:
        yield None, ()
        return
    from lanner.telemetry.endpoint import serve_endpoint
    from lanner.telemetry.exposition import new_registry
    from lanner.telemetry.server_metrics import ServerMetrics

    registry = new_registry()
    metrics = ServerMetrics(server, registry)
    with serve_endpoint(where.address, registry, readiness, where.names) as bound:
        yield bound, (metrics,)


class _OwnServer(Server):
    """A server for who started it alone."""

    _own_clients = True


def _server(options: argparse.Namespace) -> Server:
    kind = _OwnServer if options.until_stdin_closes else Server
    return kind(
        _load_models(options.models, read_limits(options)),
        options.listen,
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        client_ca=options.client_ca,
        ban_after=options.ban_after,
        state_dir=options.state_dir,
        max_sessions=options.max_sessions,
        max_material=options.max_material,
        max_stock=options.max_stock,
        max_keys=options.max_keys,
        share_weights=options.share_weights,
        timeout=options.timeout,
        insecure_plaintext=options.insecure_plaintext,
        web=options.web,
        web_origins=options.web_origin,
        web_names=options.web_name,
        web_without_origin=options.web_without_origin,
        web_cert=options.web_cert,
        web_key=options.web_key,
    )


def _on_interrupt(handler: Callable[[int, FrameType | None], object]) -> None:
    """Say what Ctrl-C does, unless it is ignored, as in a shell's background job: it is for the job in front."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _wait(stopped: Stopping, journal: Journal, output: Output) -> None:
    """Read the journal until the server is to stop."""
    ended = EndedSessions(QUIET_LOOKS)
    # Waiting in slices lets Python run the signals' handlers on every platform.
    while not stopped.wait(LOG_SECONDS):
        ended.look(journal.read())
    _on_interrupt(signal.default_int_handler)
    output.tell(f"stopping: sessions have {DRAIN_SECONDS:g} s to finish; Ctrl-C ends them now", event="stopping")


def _await_end_of_input(stopped: Stopping) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    stopped.set()


def _load_models(arguments: list[str], limits: LimitKeywords) -> dict[str, Model]:
    models: dict[str, Model] = {}
    for argument in arguments:
        offered = Offered.parse(argument)
        model = load(offered.path, commitment=offered.commitment, **limits)
        name = offered.name or model.name
        if name in models:
            raise MisuseError(f"two models are named {name}", fix="write NAME=MODEL.lanner")
        models[name] = model
    return models


def _document(server: Server) -> dict[str, Any]:
    models = [
        {
            "name": name,
            "commitment": model.commitment,
            "mode": model.manifest.mode,
            "output": model.manifest.output,
            "input": {"name": model.manifest.input.name, "shape": list(model.manifest.input.shape)},
        }
        for name, model in server.models.items()
    ]
    web = {"web": server.web_address} if server.web_address is not None else {}
    return {"address": server.address, "fingerprint": server.fingerprint, "models": models, **web}


def _announce(server: Server, metrics: str | None, output: Output) -> None:
    for name, model in server.models.items():
        entry = model.manifest
        said = f"mode {entry.mode}, output {entry.output}, input {input_of(entry.input)}"
        output.section(f"Model {name}", [("", said), ("", f"commitment {entry.commitment}")])
    output.say(f"listening on {server.address}")
    trust = f"fingerprint {server.fingerprint}" if server.fingerprint else "PLAINTEXT: anyone on the way can interfere"
    output.say(trust, whole=True)
    for name in server.models:
        output.say(predict_line(server, name), whole=True)
    if server.web_address is not None:
        output.say(_web_line(server))
    if metrics is not None:
        output.say(f"metrics at http://{metrics}/metrics")
    output.log(Event("listening", None, fields={"address": server.address, "models": list(server.models)}))


def _web_line(server: Server) -> str:
    """What to open in a browser, or why there is nothing."""
    if not server.has_page:
        return (
            f"WebSockets at {server.web_address}; there is no page, as this installation was built without the "
            "browser client (`make web`)"
        )
    host, port = str(server.web_address).rsplit(":", 1)
    # A page of localhost is one that a browser takes for secure without a certificate.
    shown = "localhost" if host in ("0.0.0.0", "[::]", "127.0.0.1", "[::1]") else host  # noqa: S104 - compared
    scheme = "https" if server.web_is_secured else "http"
    return f"in a browser: {scheme}://{shown}:{port}/"


def predict_line(server: Server, model: str) -> str:
    """The command that a client types to use a model of this server."""
    host, port = server.address.rsplit(":", 1)
    if host in ("0.0.0.0", "[::]"):  # noqa: S104 - compared, not bound
        host = socket.gethostname()
    trust = f"--pin {server.fingerprint}" if server.fingerprint else "--insecure-plaintext"
    chosen = f" --model {shlex.quote(model)}" if len(server.models) > 1 else ""
    return f"lanner predict {shlex.quote(f'{host}:{port}')} INPUT{chosen} {trust}"
