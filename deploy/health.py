"""Asks whether a page is answered, for a container's health check; exits 0 or 1.

    python health.py URL [CERTIFICATES]

With a file of certificates an https page must show one of theirs.
"""

from __future__ import annotations

import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

#: Seconds to wait for the page.
PATIENCE = 4.0


def main(arguments: Sequence[str]) -> int:
    """Ask once and say on standard error why not."""
    url, *certificates = arguments
    context = ssl.create_default_context(cafile=certificates[0]) if certificates else None
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE, context=context):  # noqa: S310 - of the operator's choosing
            return 0
    except (OSError, urllib.error.URLError) as error:
        print(f"health: {url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
