"""What the gateway answers where it does not predict: a status and one sentence."""

from __future__ import annotations

from lanner.errors import BusyError, InputError, LannerError, PeerError, TransportError

#: Seconds after which a caller that was turned away may try again.
RETRY_SECONDS = 2


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with an error.

    Attributes:
        status: The HTTP status.
        sentence: What is wrong, and what to do.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}


def busy(sentence: str) -> Refused:
    """The answer to a caller that may try again soon."""
    return Refused(503, sentence, {"Retry-After": str(RETRY_SECONDS)})


def refusal_of(error: LannerError) -> Refused:
    """The answer to an error of this package: the input is the caller's, all else the server's or the gateway's."""
    if isinstance(error, InputError):
        return Refused(400, str(error))
    if isinstance(error, BusyError):
        return busy(str(error))
    if isinstance(error, PeerError | TransportError):
        return Refused(502, str(error))
    return Refused(500, str(error))
