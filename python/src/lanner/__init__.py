"""Private neural-network inference between two parties.

A server holds a network and a client holds an input. The client learns what the server's owner chose to reveal (by
default the label alone); the server learns nothing about the input, and the client nothing about the weights.

    model = lanner.compile("net.onnx", calibration=x)
    server = lanner.Server(model, "127.0.0.1:0")
    server.start()
    client = lanner.Client(server.address, pin=server.fingerprint)
    client.predict(x[0]).label
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanner.client import Client, OfferedModel, list_models
    from lanner.errors import (
        BusyError,
        InputError,
        LannerError,
        MisuseError,
        ModelError,
        PeerError,
        TransportError,
        UnsupportedOpError,
    )
    from lanner.images import ImageDescription
    from lanner.keys import MadeKeys, keygen
    from lanner.local import run
    from lanner.model import Model, compile, load  # noqa: A004 - the interface's name
    from lanner.precision import PrecisionWarning
    from lanner.prediction import Layer, Phase, Prediction, SentMessage
    from lanner.progress import SetUpWatch
    from lanner.server import Server
    from lanner.tables import TableWarning
    from lanner.texts import TextWarning

    __version__: str

#: The module of each public name, loaded when the name is first used: a command that needs little starts at once.
_MODULES = {
    "BusyError": "lanner.errors",
    "Client": "lanner.client",
    "ImageDescription": "lanner.images",
    "InputError": "lanner.errors",
    "LannerError": "lanner.errors",
    "Layer": "lanner.prediction",
    "MadeKeys": "lanner.keys",
    "MisuseError": "lanner.errors",
    "Model": "lanner.model",
    "ModelError": "lanner.errors",
    "OfferedModel": "lanner.client",
    "PeerError": "lanner.errors",
    "Phase": "lanner.prediction",
    "PrecisionWarning": "lanner.precision",
    "Prediction": "lanner.prediction",
    "SentMessage": "lanner.prediction",
    "Server": "lanner.server",
    "SetUpWatch": "lanner.progress",
    "TableWarning": "lanner.tables",
    "TextWarning": "lanner.texts",
    "TransportError": "lanner.errors",
    "UnsupportedOpError": "lanner.errors",
    "compile": "lanner.model",
    "keygen": "lanner.keys",
    "list_models": "lanner.client",
    "load": "lanner.model",
    "run": "lanner.local",
}

__all__ = [
    "BusyError",
    "Client",
    "ImageDescription",
    "InputError",
    "LannerError",
    "Layer",
    "MadeKeys",
    "MisuseError",
    "Model",
    "ModelError",
    "OfferedModel",
    "PeerError",
    "Phase",
    "PrecisionWarning",
    "Prediction",
    "SentMessage",
    "Server",
    "SetUpWatch",
    "TableWarning",
    "TextWarning",
    "TransportError",
    "UnsupportedOpError",
    "compile",
    "keygen",
    "list_models",
    "load",
    "run",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Load a public name from its module.

    Raises:
        AttributeError: If there is no such name.
    """
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("lanner")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module 'lanner' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
