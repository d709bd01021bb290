"""``lanner gateway``: a server's models as the Open Inference Protocol v2 and a web page, on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from lanner.cli.arguments import Peer, add_peer_arguments, add_peer_options, read_peer
from lanner.cli.events import Event, add_log_option
from lanner.cli.log import request_event
from lanner.cli.memory import give_back_large_buffers
from lanner.cli.open_files import connections_within_open_files
from lanner.cli.output import Output
from lanner.cli.report import input_of
from lanner.client import Client
from lanner.errors import LannerError, MisuseError
from lanner.extras import require
from lanner.progress import SetUpWatch
from lanner.state import state_directory, state_path
from lanner.telemetry.tracing import tracing

if TYPE_CHECKING:
    from lanner.gateway.listening import Listening
    from lanner.gateway.sessions import ServedModel
    from lanner.gateway.token import Token
    from lanner.gateway.web import WebServer
    from lanner.telemetry.records import Listener, Request

NAME = "gateway"
HELP = "offer a server's models on this machine, to programs (KServe, Open Inference Protocol v2) and to browsers"

#: What traces call the gateway, where no variable names it.
SERVICE = "lanner-gateway"

#: Seconds to wait for a server that is only asked whether it is there.
PROBE_SECONDS = 5.0

#: Requests that may wait where --max-waiting is not given.
DEFAULT_WAITING = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_peer_arguments(parser)
    group = parser.add_argument_group(
        "callers",
        "Callers send their inputs unencrypted to the gateway, so run it where the inputs are. TLS and a token "
        "are required as soon as other machines can reach it.",
    )
    group.add_argument(
        "--listen",
        default="127.0.0.1:8080",
        metavar="HOST[:PORT]",
        help="address for callers; port 0 chooses a free one (default: 127.0.0.1:8080, this machine only)",
    )
    group.add_argument("--tls-cert", type=Path, metavar="F", help="the gateway's certificate, for HTTPS")
    group.add_argument("--tls-key", type=Path, metavar="F", help="the private key of --tls-cert")
    group.add_argument(
        "--token-file",
        type=Path,
        metavar="F",
        help="file with the token that callers send as `Authorization: Bearer ...`; created if missing (default: "
        "gateway.token in the state directory if other machines can connect, else no token)",
    )
    group.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name under which callers reach the gateway; may be repeated. Its address, and off loopback this "
        "machine's own name, always work",
    )
    group.add_argument(
        "--max-waiting",
        type=int,
        default=DEFAULT_WAITING,
        metavar="N",
        help=f"requests that may wait; further ones are asked to try again later (default: {DEFAULT_WAITING})",
    )
    group.add_argument(
        "--health",
        metavar="ADDR",
        help="answer /healthz and /readyz at HOST:PORT, without TLS and token, for probes",
    )
    add_log_option(parser)
    add_peer_options(parser, several_models=True)


def run(options: argparse.Namespace, output: Output) -> int:
    """Connect to the server, and answer until SIGTERM or Ctrl-C, which drain and exit 0."""
    output.structured = options.log_format == "json"
    if options.max_waiting < 0:
        raise MisuseError(f"--max-waiting is {options.max_waiting}", fix="give 0 or more")
    _require_web_server()
    give_back_large_buffers()
    from lanner import __version__
    from lanner.gateway.admission import Admission
    from lanner.gateway.app import make_app
    from lanner.gateway.connections import BOUNDS
    from lanner.gateway.guard import Guard
    from lanner.gateway.listening import Listening
    from lanner.gateway.page import FILES
    from lanner.gateway.service import Service
    from lanner.gateway.web import WebServer
    from lanner.telemetry.exposition import new_registry
    from lanner.telemetry.gateway_metrics import GatewayMetrics

    listening = Listening.parse(options.listen, options.tls_cert, options.tls_key)
    context = listening.context()
    peers = _read_peers(options)
    token_file, token = _read_token(options, listening)
    most = connections_within_open_files(BOUNDS.most)
    guard = Guard(listening.scheme, listening.hosts(options.name), token, frozenset(FILES))
    with (
        tracing(SERVICE, output.warn) as traces,
        listening.bind() as bound,
        _connected(peers, state_path(options.state_dir), output) as models,
    ):
        url = listening.url(bound)
        service = Service({model.name: model for model in models}, Admission(1 + options.max_waiting), __version__)
        registry = new_registry()
        modes = {model.name: model.manifest.mode for model in models}
        metrics = GatewayMetrics(modes, lambda: service.admission.held, registry)
        listeners: list[Listener] = [partial(_log, output), metrics.answered, *(spans.answered for spans in traces)]
        app = make_app(service, guard, registry, listeners)
        server = WebServer(app, bound, context, replace(BOUNDS, most=most))
        with _healthy(options, server, models) as health:
            output.document({"url": url, "models": list(service.models), "token_file": token_file, "health": health})
            _announce(url, models, token_file, health, output)
            server.answer_until_stopped()
        output.tell("stopping", event="stopping")
    output.tell("stopped", event="stopped")
    return 0


def _require_web_server() -> None:
    for module in ("fastapi", "uvicorn"):
        require(module, "the gateway")


def _read_peers(options: argparse.Namespace) -> list[Peer]:
    """The server, once for each model that is named, or once for its only one."""
    names: list[str] = options.model or []
    if len(set(names)) < len(names):
        raise MisuseError("--model names a model twice", fix="name each once")
    if len(names) > 1 and options.pin_model is not None:
        raise MisuseError("--pin-model is of one model, and --model names several", fix="run a gateway for each")
    peer = read_peer(argparse.Namespace(**{**vars(options), "model": None}))
    return [replace(peer, model=name) for name in names] or [peer]


def _read_token(options: argparse.Namespace, listening: Listening) -> tuple[str | None, Token | None]:
    """The path of the token's file and the token; None for both where callers need none."""
    from lanner.gateway.token import FILE, read_token

    path = options.token_file
    if path is None:
        if listening.is_loopback:
            return None, None
        path = state_directory(options.state_dir) / FILE
    return str(path), read_token(path)


@contextmanager
def _connected(peers: Sequence[Peer], state: Path, output: Output) -> Iterator[list[ServedModel]]:
    """The models, each with a session, which ends with the body."""
    from lanner.gateway.sessions import ServedModel

    models: list[ServedModel] = []
    try:
        with output.progress("connecting"):
            for peer in peers:
                models.append(ServedModel(peer.model, partial(_connect, peer, state)))  # noqa: PERF401 - closed below
        yield models
    finally:
        for model in models:
            model.close()


def _connect(
    peer: Peer, state: Path, *, pin_model: str | None, probing: bool, watch: SetUpWatch | None = None
) -> Client:
    if pin_model is not None:
        peer = replace(peer, trust=replace(peer.trust, pin_model=pin_model))
    if probing:
        peer = replace(peer, timeout=min(peer.timeout, PROBE_SECONDS))
    return peer.connect(state, watch)


@contextmanager
def _healthy(options: argparse.Namespace, server: WebServer, models: Sequence[ServedModel]) -> Iterator[str | None]:
    """Tell health at an address of its own, if there is one: the address as bound."""
    if options.health is None:
        yield None
        return
    from lanner.telemetry.endpoint import serve_health

    with serve_health(options.health, server.turns, partial(_is_ready, server, models), options.name) as bound:
        yield bound


def _is_ready(server: WebServer, models: Sequence[ServedModel]) -> bool:
    try:
        for model in models:
            model.check_ready()
    except LannerError:
        return False
    return server.is_answering


def _announce(
    url: str, models: Sequence[ServedModel], token_file: str | None, health: str | None, output: Output
) -> None:
    for model in models:
        manifest = model.manifest
        said = f"mode {manifest.mode}, output {manifest.output}, input {input_of(manifest.input)}"
        output.section(f"Model {model.name}", [("", said), ("", f"commitment {manifest.commitment}")])
    output.say(f"page at {url}/", whole=True)
    output.say(f"Open Inference Protocol v2 at {url}/v2", whole=True)
    if token_file is not None:
        output.say(f"callers need the token in {token_file}", whole=True)
    if health is not None:
        output.say(f"health at http://{health}/healthz and /readyz")
    output.log(Event("listening", None, fields={"url": url, "models": [model.name for model in models]}))


def _log(output: Output, request: Request) -> None:
    """Log a prediction, or a request that failed; the questions of programs that only look are too many."""
    if request.method == "POST" or request.status >= HTTPStatus.BAD_REQUEST:
        output.log(request_event(request))
