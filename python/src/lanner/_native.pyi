"""Types of the native module; JSON strings cross the boundary, so that it stays a thin conversion."""

import builtins
from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from lanner.tracing import Trace, Traces

class NativeError(Exception):
    """An error of the native layers.

    ``kind`` is one of misuse, model, unsupported, peer, busy, transport, input.
    """

    kind: str
    what: str
    where: str
    fix: str

@final
class NativeInput:
    """A model's input, of the document in its manifest."""

    def __init__(self, input_json: str) -> None: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def preprocessed(self) -> bool: ...
    @property
    def unit(self) -> float: ...
    def limits(self) -> tuple[list[float], list[float], list[float]]:
        """The smallest and the largest value and the unit: of each feature, or one for all."""
    def outside(self, x: NDArray[np.float32]) -> int | None:
        """The first value of samples, shape (n, *shape), row-major, that rounds to one beyond the range."""

@final
class NativeText:
    """How a text becomes a model's inputs, of the document in its manifest."""

    def __init__(self, text_json: str) -> None: ...
    def describe(self) -> str:
        """As JSON: the kind, how many tokens, the largest number of one, and whether it lowercases."""
    def encode(
        self, texts: list[str], truncate: bool
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], list[bool]]:
        """Tokens, masks and types, shape (n, length), and which texts were cut."""
    def tokens(self, ids: list[int]) -> list[str | None]:
        """The tokens of these numbers; None of a number that no token has."""

def read_tokenizer(text: str, pad: str | None = None) -> str:
    """A tokenizer file as it goes into a public half, and what it says of lengths, as JSON."""

@final
class NativeModel:
    """A compiled model: fixed-point network, scales, plan and output policy."""

    @staticmethod
    def compile(
        graph_json: str,
        tensors: dict[str, NDArray[np.float32]],
        calibration: NDArray[np.float32],
        options_json: str,
        tell: Callable[[str], None] | None = None,
        traces: Traces | None = None,
    ) -> NativeModel: ...
    @staticmethod
    def load(path: str, max_memory: int | None = None, max_seconds: int | None = None) -> NativeModel: ...
    def keeping(
        self,
        bits: int,
        calibration: NDArray[np.float32],
        max_memory: int | None = None,
        max_seconds: int | None = None,
    ) -> NativeModel: ...
    def save(self, path: str) -> None: ...
    def manifest(self) -> str: ...
    def published(self, name: str) -> NDArray[np.float32] | None: ...
    def fixed(self, x: NDArray[np.float32]) -> tuple[NDArray[np.int64], int, list[list[tuple[str, int]]]]: ...
    def probability(self, scores: list[int]) -> builtins.float | None: ...
    def float(self, x: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def report(self) -> str: ...
    def debug(self, x: NDArray[np.float32], secure: bool) -> str: ...
    @property
    def logits_scale(self) -> builtins.float: ...
    @property
    def secure_error(self) -> int: ...

@final
class NativeServer:
    """A serving party: accepts sessions until stopped."""

    def __init__(
        self,
        models: list[tuple[str, NativeModel]],
        config_json: str,
        page: Callable[[str | None], list[tuple[str, str, bytes]]] | None = None,
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self, drain_seconds: float) -> None: ...
    @property
    def address(self) -> str: ...
    @property
    def web_address(self) -> str | None: ...
    @property
    def fingerprint(self) -> str | None: ...
    @property
    def outside_term(self) -> str | None: ...
    def stats(self) -> str: ...
    def kept(self) -> str: ...
    def computed(self) -> str: ...
    def journal(self) -> str: ...

@final
class NativeClient:
    """A data owner's session: the constructor connects, shakes hands and does the set-up."""

    def __init__(self, config_json: str, watch: NativeSetUpWatch) -> None: ...
    def manifest(self) -> str: ...
    def progress(self) -> str:
        """A JSON list of what each step has come to; waits for no call that runs."""
    def prepare(self, count: int) -> None: ...
    def keep(self, count: int) -> str: ...
    def stock(self) -> int: ...
    def together(self) -> int:
        """How many samples `predict` should have at once."""
    def predict(self, x: NDArray[np.float32], follow: int) -> str:
        """Samples, shape (n, *shape), at once; how many follow. The JSON of a list of predictions."""
    def longest_sent(self) -> tuple[int, bytes]:
        """The length and the first bytes of the longest message that the last `predict` sent."""
    def close(self) -> None: ...

@final
class NativeSetUpWatch:
    """Tells how far a client that is being made has come."""

    def __init__(self) -> None: ...
    def parts(self) -> str:
        """A JSON list of what each part has come to; waits for nothing."""

@final
class NativeRelay:
    """An emulated network in front of a server, on this machine."""

    def __init__(self, target: str, bandwidth_bits_per_second: float, round_trip_seconds: float) -> None: ...
    @property
    def address(self) -> str: ...
    def close(self) -> None: ...

def check_options(options_json: str) -> None:
    """Raises NativeError for what is wrong whatever the network is."""

def refusals(graph_json: str, tensors: dict[str, NDArray[np.float32]], options_json: str) -> str: ...
def estimate(
    manifest_json: str,
    kernels_json: str | None = None,
    network: tuple[float, float] | None = None,
    max_memory: int | None = None,
    max_seconds: int | None = None,
    cores: tuple[int | None, int | None] = (None, None),
) -> str: ...
def shipped_kernel_times() -> str: ...
def describe_kernel_times(kernels_json: str | None = None) -> str: ...
def list_models(config_json: str) -> str:
    """The JSON of a list of name and commitment."""

def measure_link(config_json: str) -> tuple[float, float]:
    """The bits per second and the round trip in seconds to a server."""

def network_profile(name: str) -> tuple[float, float] | None: ...
def run_in_memory(model: NativeModel, x: NDArray[np.float32]) -> str:
    """Samples, shape (n, *shape), by one request; the JSON of a list of predictions."""

def traces(manifest: str, weights: bytes, samples: NDArray[np.float32], numbers: list[int]) -> list[Trace]:
    """What a network makes of samples, shape (n, *shape), on one core; `numbers` name them in errors."""

def doctor() -> str: ...
def modes() -> str:
    """A JSON list of what each mode is: name, roundings, interactive, packing, lookups."""

def keygen(manifest_json: str, path: str, max_memory: int | None = None, max_seconds: int | None = None) -> str: ...
def pairings(state_dir: str) -> str: ...
def revoke(state_dir: str, pairing: str) -> bool: ...
