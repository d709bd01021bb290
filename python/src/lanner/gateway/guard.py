"""What the gateway lets in: callers that know its name and its token, and no foreign web page.

A page from elsewhere can make a browser on this machine send requests to loopback. Three rules keep it out:

- The ``Host`` must be a name of the gateway. A foreign name that was made to resolve to this machine is none.
- An ``Origin``, and what browsers say in ``Sec-Fetch-Site``, must be the gateway's own.
- A POST has a content type that a page may not send elsewhere without asking first, and asking is never granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers

from lanner.gateway.errors import Refused
from lanner.gateway.token import Token
from lanner.hosts import Hosts

#: What a POST may hold.
CONTENT_TYPES = ("application/json", "application/octet-stream")

#: Sent with every answer.
SECURITY_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules for one gateway.

    Attributes:
        scheme: ``http`` or ``https``.
        hosts: The names under which it may be reached.
        token: What callers must show; None for none.
        public: The paths of the page's files, which need no token: they hold nothing of anybody's.
    """

    scheme: str
    hosts: Hosts
    token: Token | None
    public: frozenset[str]

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Check a request before its body is read.

        Raises:
            Refused: If it is not let in.
        """
        self._check_host(headers)
        self._check_origin(method, headers)
        if self.token is not None and path not in self.public:
            self._check_token(headers)
        if method == "POST":
            check_content_type(headers)

    def _check_host(self, headers: Headers) -> None:
        if not self.hosts.include(headers.getlist("host")):
            raise Refused(421, "this is not a name of the gateway; use its address, or name it with --name")

    def _check_origin(self, method: str, headers: Headers) -> None:
        own = f"{self.scheme}://{headers['host']}".lower()
        if any(origin.lower() != own for origin in headers.getlist("origin")):
            raise Refused(403, "the request comes from a page of another origin; only the gateway's own may ask")
        # Following a link to the page is no request of the other page's.
        followed = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not followed:
            raise Refused(403, "the request comes from a page of another site; only the gateway's own may ask")

    def _check_token(self, headers: Headers) -> None:
        given = headers.getlist("authorization")
        if self.token is None or len(given) != 1 or not self.token.matches(given[0]):
            raise Refused(
                401,
                "this needs the gateway's token; send it in the header Authorization, as Bearer TOKEN",
                {"WWW-Authenticate": 'Bearer realm="lanner gateway"'},
            )


def check_content_type(headers: Headers) -> None:
    """Check that a POST is of a kind that no foreign page can send without asking.

    Programs that name no content type, as Triton's client does, are let in; browsers always say where a POST is from.

    Raises:
        Refused: If it is not.
    """
    kind = headers.get("content-type")
    if kind is None and not any(name in headers for name in ("origin", "sec-fetch-site", "referer", "cookie")):
        return
    if (kind or "").partition(";")[0].strip().lower() not in CONTENT_TYPES:
        raise Refused(415, f"the content type must be {' or '.join(CONTENT_TYPES)}")
