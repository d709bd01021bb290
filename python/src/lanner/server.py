"""The serving party: offers compiled models to clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from lanner import _native
from lanner.errors import MisuseError, native_errors, option_named, spelled
from lanner.files import check_file
from lanner.forks import OfProcess
from lanner.heap import give_back_freed
from lanner.interrupts import interruptible
from lanner.model import Model, as_model
from lanner.state import state_directory
from lanner.trust import parse_address
from lanner.web.files import is_built, page_files, server_document

#: Seconds without a byte after which a session is closed in the middle of a request.
DEFAULT_TIMEOUT = 60.0

#: Sessions at once; beyond that clients hear that the server is busy.
DEFAULT_SESSIONS = 16


class Server(OfProcess):
    """Serves one model or several, each to any number of clients. TLS is on unless both sides turn it off.

    It belongs to the process that made it. A copy that a fork makes of that process may ask for `address` and
    `fingerprint`; everything else is a `MisuseError` there.

    Args:
        models: A model or the path of its file, several, or models by the names that clients ask for. Files are read
            within the usual limits; `lanner.load` reads larger models.
        listen: ``HOST:PORT``; port 0 chooses a free one.
        tls_cert: A certificate chain in PEM; without one, a self-signed key is kept in the state directory.
        tls_key: The private key to `tls_cert`.
        client_ca: Authorities whose certificates clients must show. Without it no model of mode ``hardened`` is served;
            with such a model, or `ban_after`, each certificate in it must say that it is an authority's.
        ban_after: How often a client may fail a check of mode ``hardened``, which no honest client fails, before the
            key of its certificate is banned; 1 if left out.
        state_dir: Where the server keeps its key; see `lanner.state`.
        max_sessions: Sessions at once.
        max_material: Bytes of memory that all sessions together may take for one-time material, clients' keys and what
            clients have sent ahead, beyond which clients are told that the server is busy; a quarter of the machine's
            memory if left out.
        max_stock: Bytes of material and keys that are kept on disk for clients, none of which may have more than
            half; a quarter of what is free there, and 16 GiB at most, if left out. With 0 nothing is kept.
        max_keys: Bytes of uploaded keys that are kept on disk, of which those go first that were used least recently; a
            quarter of what is free there, and 4 GiB at most, if left out. With 0 every session is sent its keys.
        share_weights: A directory in which servers of this machine keep encoded weights, which all that serve a model
            map once: the first writes them. They are as secret as the model, and nobody else may enter it. If left out,
            the server keeps weights of its own.
        timeout: Seconds without a byte after which a session is closed in the middle of a request. Between requests a
            session is waited for that long too, and 15 minutes at least.
        insecure_plaintext: Whether to speak without TLS.
        web: ``HOST:PORT`` where browsers connect, over WebSocket, and get the page, where this installation has it; it
            may be `listen`. None, and no browser may.
        web_origins: Origins of pages of other hosts that may connect, such as ``https://page.example``.
        web_names: Host names under which browsers reach the server, beside ``localhost``, the machine's own name and
            addresses in numbers.
        web_without_origin: Whether programs may connect over WebSocket that name no origin, as Node's.
        web_cert: A certificate chain in PEM that browsers accept, for ``wss://`` and ``https://``.
        web_key: The private key to `web_cert`.

    Attributes:
        models: The models by the names that clients ask for.

    Raises:
        MisuseError: If an argument is wrong, or two models have one name.
        ModelError: If a path leads to no model.
    """

    _kind = "server"
    #: Whether all its clients are of who runs it, so that none has to be known again. After one that fails a check none
    #: is served a model of mode ``hardened`` any more.
    _own_clients = False

    def __init__(
        self,
        models: Model | str | Path | Sequence[Model | str | Path] | Mapping[str, Model | str | Path],
        listen: str = "127.0.0.1:0",
        *,
        tls_cert: str | Path | None = None,
        tls_key: str | Path | None = None,
        client_ca: str | Path | None = None,
        ban_after: int | None = None,
        state_dir: str | Path | None = None,
        max_sessions: int = DEFAULT_SESSIONS,
        max_material: int | None = None,
        max_stock: int | None = None,
        max_keys: int | None = None,
        share_weights: str | Path | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        insecure_plaintext: bool = False,
        web: str | None = None,
        web_origins: Sequence[str] = (),
        web_names: Sequence[str] = (),
        web_without_origin: bool = False,
        web_cert: str | Path | None = None,
        web_key: str | Path | None = None,
    ) -> None:
        super().__init__()
        browsers = _web(web, web_origins, web_names, web_without_origin, (web_cert, web_key))
        if (tls_cert is None) != (tls_key is None):
            raise MisuseError("a certificate needs its key", fix=spelled("give both ⟦tls_cert⟧ and ⟦tls_key⟧"))
        for name, given in (
            ("max_sessions", max_sessions),
            ("max_material", max_material),
            ("timeout", timeout),
            ("ban_after", ban_after),
        ):
            if given is not None and given <= 0:
                what = f"{option_named(name)} is {given:g}"
                raise MisuseError(what, fix="give a positive number, or leave it out for the default")
        for name, limit in (("max_stock", max_stock), ("max_keys", max_keys)):
            if limit is not None and limit < 0:
                what = f"{option_named(name)} is {limit}"
                raise MisuseError(what, fix="give a number of bytes, or 0 to keep nothing")
        for path in (tls_cert, tls_key, client_ca, web_cert, web_key):
            if path is not None:
                check_file(path, MisuseError)
        self.models = _by_name(models)
        config = {
            "listen": parse_address(listen),
            "tls_cert": _text(tls_cert),
            "tls_key": _text(tls_key),
            "client_ca": _text(client_ca),
            "ban_after": ban_after,
            "own_clients": self._own_clients,
            "state_dir": str(state_directory(state_dir)),
            "max_sessions": max_sessions,
            "max_material": max_material,
            "max_stock": max_stock,
            "max_keys": max_keys,
            "share_weights": _text(share_weights),
            "timeout": timeout,
            "insecure_plaintext": insecure_plaintext,
            "web": browsers,
        }
        self._has_page = web is not None and is_built()
        self._web_is_secured = web_cert is not None
        self._asks_certificates = client_ca is not None
        natives = [(name, model.native) for name, model in self.models.items()]
        with native_errors(listen):
            self._native = _native.NativeServer(natives, json.dumps(config), self._page)
        if share_weights is not None:
            # Whoever encoded has what it took in the heap still, beside the file.
            give_back_freed()

    def _page(self, fingerprint: str | None) -> list[tuple[str, str, bytes]]:
        """The page's files, by the paths that browsers ask for."""
        if not self._has_page:
            return []
        models = {name: model.commitment for name, model in self.models.items()}
        files = page_files(server_document(fingerprint, models, certificates=self._asks_certificates))
        files[""] = files.pop("index.html")
        return [(f"/{path}", file.kind, file.content) for path, file in files.items()]

    @property
    def has_page(self) -> bool:
        """Whether browsers get a page."""
        return self._has_page

    @property
    def web_is_secured(self) -> bool:
        """Whether browsers are shown a certificate of their own."""
        return self._web_is_secured

    @property
    def web_address(self) -> str | None:
        """``HOST:PORT`` for browsers, as bound once the server was started; None if none may connect."""
        return self._native.web_address

    def start(self) -> None:
        """Listen and serve on threads of the native module; returns when clients can connect.

        Raises:
            TransportError: If the address cannot be listened on.
        """
        self._check_process()
        with native_errors():
            self._native.start()

    def stop(self, drain_seconds: float = 10.0) -> None:
        """Refuse new sessions, let those under way end within `drain_seconds`, and close."""
        self._check_process()
        with native_errors():
            interruptible(lambda: self._native.stop(drain_seconds))

    def close(self) -> None:
        """Do what `stop` does: the name that a client has for it."""
        self.stop()

    @property
    def outside_term(self) -> str | None:
        """Why the certificate's term does not hold now, as "it expired on 2021-02-01"; None if it holds.

        Clients that check it against an authority refuse it; those that pin it do not look at the term.
        """
        return self._native.outside_term

    @property
    def address(self) -> str:
        """``HOST:PORT`` as bound."""
        return self._native.address

    @property
    def fingerprint(self) -> str | None:
        """What a client pins: ``sha256:`` and the certificate's hash; None in plaintext."""
        return self._native.fingerprint

    def stats(self) -> dict[str, Any]:
        """Counts since the start, and how many sessions are under way and, as ``material``, the bytes that they hold.

        ``predictions_by_model`` has the predictions of each model that somebody asked for.
        """
        self._check_process()
        with native_errors():
            stats: dict[str, Any] = json.loads(self._native.stats())
        return stats

    def kept(self) -> dict[str, Any]:
        """What is kept on disk for clients.

        That is ``pairings``, the ``predictions`` that there is material for, the ``bytes`` of both, and the
        ``uploaded_bytes`` of keys that clients uploaded.
        """
        self._check_process()
        with native_errors():
            kept: dict[str, Any] = json.loads(self._native.kept())
        return kept

    def journal(self) -> tuple[list[dict[str, Any]], int]:
        """What became of connections since this was last asked, the oldest first, and how many more there were.

        Of each: the number of its ``session``, the ``time`` of its end (seconds since 1970), ``peer`` (address),
        ``certificate`` (the fingerprint of the client's; None if it showed none), ``model`` (None if it did not get so
        far), ``predictions``, ``seconds`` that it lasted, bytes ``sent`` and
        ``received``, its ``ending`` (``done``, ``stopped`` by the server's stop, ``busy``, ``failed`` or
        ``no_connection``) and, where something went wrong, the ``reason`` in a sentence and the ``cause`` in a word. At
        most 1024 are kept. ``runs`` are what the phases of its predictions took: the ``phase``, the seconds ``after``
        the session's begin and the ``seconds`` that it took, for how many ``predictions``, ``bytes_sent`` and
        ``bytes_received``, ``rounds``, and of each of its ``layers`` the same by ``name`` and ``protocol``, with the
        seconds ``computing``. A session keeps 1024 runs and layers, all entries together 32768, and ``runs_omitted``
        counts further runs.
        """
        self._check_process()
        with native_errors():
            entries, omitted = json.loads(self._native.journal())
        return entries, omitted

    def computed(self) -> list[dict[str, Any]]:
        """How long the running server has computed, by model, phase, step and protocol.

        ``seconds`` is wall time without waits and transport, over ``count`` times.
        """
        self._check_process()
        with native_errors():
            computed: list[dict[str, Any]] = json.loads(self._native.computed())
        return computed

    def __repr__(self) -> str:
        return f"<lanner.Server at {self.address}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A child that leaves the block leaves its parent's server as it is.
        if not self._is_inherited():
            self.stop()


def _by_name(
    models: Model | str | Path | Sequence[Model | str | Path] | Mapping[str, Model | str | Path],
) -> dict[str, Model]:
    if isinstance(models, Mapping):
        named = [(name, as_model(model)) for name, model in models.items()]
    else:
        several = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        named = [(model.name, model) for model in map(as_model, several)]
    result = dict(named)
    if not result:
        raise MisuseError("there is no model to serve", fix="give at least one")
    if len(result) < len(named):
        raise MisuseError("two models have one name", fix="name them, as in NAME=MODEL.lanner")
    return result


def _web(
    address: str | None,
    origins: Sequence[str],
    names: Sequence[str],
    without_origin: bool,
    certificate: tuple[str | Path | None, str | Path | None],
) -> dict[str, Any] | None:
    """How browsers come in, as the native server reads it; None if none may."""
    chain, key = certificate
    if (chain is None) != (key is None):
        raise MisuseError("a certificate needs its key", fix=spelled("give both ⟦web_cert⟧ and ⟦web_key⟧"))
    if address is None:
        if origins or names or without_origin or chain is not None:
            raise MisuseError(
                "options for browsers are given without an address for them",
                fix=spelled("give ⟦web⟧, or leave them out"),
            )
        return None
    return {
        "listen": parse_address(address),
        "origins": [_origin(text) for text in origins],
        "missing_origin": without_origin,
        "names": [socket.gethostname(), *names],
        "cert": _text(chain),
        "key": _text(key),
    }


def _origin(text: str) -> str:
    """An origin as browsers name it."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or text != f"{parts.scheme}://{parts.netloc}":
        raise MisuseError(f"{text!r} is not an origin", fix="write https://HOST or https://HOST:PORT, without a path")
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    return text.removesuffix(usual).lower()


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)
