"""Asks whether a page is answered, for a container's health check; exits 0 or 1.

    python health.py URL [CERTIFICATES [TOKEN]]

With a file of certificates an https page must show one of theirs. With a file of a gateway's token it is shown.
"""

from __future__ import annotations

import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

#: Seconds to wait for the page.
PATIENCE = 4.0


def main(arguments: Sequence[str]) -> int:
    """Ask once and say on standard error why not."""
    url, *files = arguments
    try:
        context = ssl.create_default_context(cafile=files[0]) if files else None
        headers = {"Authorization": f"Bearer {Path(files[1]).read_text().strip()}"} if len(files) > 1 else {}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - of the operator's choosing
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context):  # noqa: S310
            return 0
    except (OSError, urllib.error.URLError) as error:
        print(f"health: {url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
