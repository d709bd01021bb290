"""No address in the project leads to something that does not exist: each host, repository and mailbox is listed here.

A new address is looked at by a person, who adds its host. The project itself has no public repository, page or mailbox,
so that whatever would name one fails here.
"""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

URL = re.compile(r"\b(?:https?|ftp|git|ssh|git\+https?|git\+ssh)://[^\s<>\"'`|\\)\]}]+")
MAILBOX = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")

#: Papers, data, tools, and the names of formats.
HOSTS = {
    *("arxiv.org", "doi.org", "eprint.iacr.org", "proceedings.mlr.press", "proceedings.neurips.cc", "www.usenix.org"),
    *("creativecommons.org", "data.mendeley.com", "medmnist.com", "oeis.org", "www.cs.toronto.edu"),
    *(
        "docs.ray.io",
        "docs.rs",
        "homes.cs.washington.edu",
        "json-schema.org",
        "keepachangelog.com",
        "prng.di.unimi.it",
        "semver.org",
        "www.rfc-editor.org",
    ),
    *("matplotlib.org", "opentelemetry.io", "purl.org", "pypi.org", "rustup.rs", "www.apache.org", "www.w3.org"),
}

#: Repositories of others. A host of repositories is no host for the list above: anybody may have an account there.
REPOSITORIES = {
    "akamaster/pytorch_resnet_cifar10",
    "chiraag/gazelle_mpc",
    "kserve/open-inference-protocol",
    "secretflow/spu",
    "tabulainference/tabula",
    "triton-inference-server/server",
}

#: Names that lead nowhere by their definition (RFC 2606, RFC 6761).
RESERVED = re.compile(r"(^|\.)(example|invalid|localhost|test)$|^example\.(com|net|org)$")


def tracked() -> Iterator[Path]:
    """The files of the project, but for lock files, which name what registries have."""
    command = ["git", "-C", str(ROOT), "ls-files"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in listing.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix not in (".lock", ".onnx", ".png", ".npy", ".xz") and path != Path(__file__):
            yield path


def strangers(text: str) -> list[str]:
    """The addresses of a text that are not listed."""
    return [url for url in URL.findall(text) if not is_known(url)] + MAILBOX.findall(URL.sub("", text))


def is_known(url: str) -> bool:
    """Whether an address is listed, is one of this machine or a reserved name, or is made when a program runs."""
    authority, _, path = url.partition("://")[2].rstrip(".,;").partition("/")
    host = authority.rpartition("@")[2].partition(":")[0]
    if host == "github.com":
        return "/".join(path.split("/")[:2]) in REPOSITORIES
    is_made = not host or any(sign in host for sign in "{$*(")
    is_near = "." not in host or re.fullmatch(r"127(\.\d+){3}|0\.0\.0\.0", host) is not None
    return is_made or is_near or host in HOSTS or RESERVED.search(host) is not None


def test_every_address_is_listed() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {stranger}"
        for path in tracked()
        for stranger in strangers(path.read_bytes().decode("utf-8", errors="ignore"))
    }
    assert not found, "\n".join(sorted(found))


def test_every_listed_address_is_used() -> None:
    text = "\n".join(path.read_bytes().decode("utf-8", errors="ignore") for path in tracked())
    assert not {name for name in HOSTS if f"//{name}" not in text}
    assert not {name for name in REPOSITORIES if f"github.com/{name}" not in text}


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/lanner/lanner",
        "git+ssh://git@github.com/secretflow/lanner.git",
        "[the site](https://lanner.dev/docs)",
        "repository = 'https://gitlab.com/secretflow/spu'",
        "security@lanner.org",
    ],
)
def test_what_is_not_listed_is_found(text: str) -> None:
    assert len(strangers(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "https://arxiv.org/abs/1811.08257.",
        "<https://github.com/secretflow/spu>, and more",
        "http://127.0.0.1:8080/v2 https://localhost:{port} https://gate.example:8443/v2 http://{metrics}/metrics",
        "@pytest.mark.parametrize and git describe HEAD@{1}",
    ],
)
def test_what_is_listed_or_leads_nowhere_is_accepted(text: str) -> None:
    assert strangers(text) == []
