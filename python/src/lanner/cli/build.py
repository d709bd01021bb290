"""What is installed: for ``lanner --version --json``, ``lanner doctor``, and whoever reports a defect."""

from __future__ import annotations

import json
import platform
import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from lanner import _native


def build_facts() -> dict[str, Any]:
    """Versions, and what the native module was built for and found.

    ``version`` is the package's and ``native_version`` that of the native module in it; peers must agree on
    ``wire_version``, and model files on ``file_version``. ``wheel`` has the tags of the installed wheel, without which
    it is None; ``profile`` is ``release``, or ``debug``, which is many times slower; ``features`` are those of the
    processor that kernels use.
    """
    from lanner import __version__

    native: dict[str, Any] = json.loads(_native.doctor())
    return {
        "version": __version__,
        "native_version": native["version"],
        "wire_version": native["wire_version"],
        "file_version": native["format_version"],
        "wheel": _wheel_tag(),
        "profile": native["profile"],
        "architecture": native["architecture"],
        "system": native["system"],
        "features": sorted(name for name, is_there in native["features"].items() if is_there),
        "python": platform.python_version(),
    }


def _wheel_tag() -> str | None:
    try:
        text = distribution("lanner").read_text("WHEEL") or ""
    except PackageNotFoundError:
        return None
    found = re.search(r"^Tag: (.+)$", text, re.MULTILINE)
    return None if found is None else found[1].strip()
