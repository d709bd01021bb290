"""Private neural-network inference between two parties.

A server holds a network and a client holds an input. The client learns what the server's owner chose to reveal (by
default the label alone); the server learns nothing about the input, and the client nothing about the weights.

    model = lanner.compile("net.onnx", calibration=x)
    server = lanner.Server(model, "127.0.0.1:0")
    server.start()
    client = lanner.Client(server.address, pin=server.fingerprint)
    client.predict(x[0]).label
"""

from importlib.metadata import version

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

__version__ = version("lanner")

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
    "TransportError",
    "UnsupportedOpError",
    "compile",
    "keygen",
    "list_models",
    "load",
    "run",
]
