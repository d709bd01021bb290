"""Looks for private keys where none belong: in the repository, in installed files, and in logs.

It searches files for keys in PEM, services' tokens and random words, and a run's output for the parties' own secrets in
each form in which bytes are printed. A planted key checks the search. Only their owner may read the parties' files.
"""

from __future__ import annotations

import base64
import math
import re
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import lanner as installed
from endurance.parties import served
from endurance.trial import Trial
from helpers.processes import lanner, serving

ROOT = Path(__file__).resolve().parents[2]

#: What keys and tokens look like.
FORMS = {
    "a private key in PEM": re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{16}"),
    "a token of GitHub": re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{40}"),
    "a key of AWS": re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a token of PyPI or crates.io": re.compile(rb"\bpypi-[A-Za-z0-9_-]{40}|\bcio[A-Za-z0-9]{32}\b"),
    "a token of Slack or Google": re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{20}|\bAIza[A-Za-z0-9_-]{35}\b"),
    # PASSWORD stands for one, and ann is nobody: tests of proxies have her.
    "a password in an address": re.compile(
        rb"\b[a-z]+\d?h?://(?!ann:)[^/\s:@{}<>$]{1,40}:(?![A-Z]+@)[^/\s:@{}<>$]{6,60}@"
    ),
}

#: Words that may be random: of base64, and no path, name or hash in hexadecimal digits.
WORD = re.compile(rb"(?<![A-Za-z0-9+/_.-])[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9+/_.-])")

#: Bits for each character above which a word counts as random: prose has some 4, 40 random characters of base64 4.8.
ENTROPY = 4.55

#: Files whose words are hashes, weights or random on purpose: locks, known answers, seeds of fuzzing, pictures.
RANDOM = re.compile(r"\.lock$|requirements[^/]*\.txt$|^vectors/|^fuzz/seeds/|\.ipynb$|\.(?:onnx|png|jpg|svg|npy|npz)$")

#: What was made for tests and serves nobody: state of parties, which later versions are seen to read, and the key of a
#: certificate of version 1.
THROWN_AWAY = ("python/tests/data/versions/", "crates/net/tests/tls.rs")


def run(trial: Trial) -> None:
    """Look everywhere."""
    planted = b"-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(bytes(range(7, 55))) + b"\n"
    trial.check(
        "A planted key is found", list(found_in(planted, words=True)), "it is", any(found_in(planted, words=True))
    )
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
    files = [name for name in tracked.decode().split("\0") if name and (ROOT / name).is_file()]
    trial.counts["files of the repository"] = len(files)
    named = [(ROOT / name, name) for name in files if not name.startswith(THROWN_AWAY)]
    trial.counts["of these, state and keys that were made for tests, which are left out"] = len(files) - len(named)
    trial.none("Private keys in the rest of the repository", list(_scan(named)))
    package = Path(installed.__file__).parent
    there = [(path, f"lanner/{path.relative_to(package)}") for path in sorted(package.rglob("*")) if path.is_file()]
    trial.counts["files of the installed package"] = len(there)
    # The words of native modules are code, not text.
    trial.none("Private keys in the installed package", list(_scan(there)))
    _logs(trial)


def _scan(files: Iterable[tuple[Path, str]]) -> Iterator[str]:
    for path, name in files:
        words = RANDOM.search(name) is None and path.suffix not in (".so", ".pyc", ".wasm")
        for what in found_in(path.read_bytes(), words=words):
            yield f"{name}: {what}"


def found_in(content: bytes, *, words: bool) -> Iterator[str]:
    """What looks like a private key; random words only where `words` says so."""
    for what, form in FORMS.items():
        if form.search(content):
            yield what
    for word in WORD.findall(content) if words else ():
        if not re.fullmatch(rb"[0-9a-f]+|[0-9A-F]+|[0-9]+|[a-z]+|[A-Z]+", word) and entropy(word) > ENTROPY:
            yield f"a random word {word[:8].decode()}..."


def entropy(word: bytes) -> float:
    """Bits for each byte of a word, by how often each occurs."""
    return -sum(count / len(word) * math.log2(count / len(word)) for count in Counter(word).values())


def _logs(trial: Trial) -> None:
    """What parties print while they prepare and predict, and who may read what they keep."""
    network = served(trial.folder, "cheetah", count=3)
    homes = [trial.folder / party for party in ("server-home", "client-home")]
    printed = []
    with serving(homes[0], network.model) as server:
        there = (*server.pin, "--state-dir", homes[1])
        for command in (("prepare", server.address, "--count", 2), ("predict", server.address, network.samples)):
            result = lanner(*command, *there)
            assert result.code == 0, result.errors
            printed += [str(result.document), result.errors]
        printed += [lanner("pairings", "--state-dir", home).errors for home in homes]
        printed += [str(lanner("doctor").document), str(server.document), server.log()]
    secrets = [secret for home in homes for secret in _secrets(home)]
    text = "\n".join(printed)
    trial.counts |= {"secrets that parties keep": len(secrets), "characters that they print": len(text)}
    shown = [form for secret in secrets for form in _forms(secret) if form in text]
    trial.check("Parties keep secrets", len(secrets), "3 or more", len(secrets) >= 3)
    trial.none("Secrets in what they print", shown)
    entries = [path for home in homes for path in (home, *home.rglob("*"))]
    trial.counts["files and folders that they keep"] = len(entries)
    open_to_all = [f"{path.name}: {stat.S_IMODE(path.stat().st_mode):04o}" for path in entries if _is_open(path)]
    trial.none("Of what they keep, what others may read", open_to_all)


def _is_open(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) & 0o077 != 0


def _secrets(home: Path) -> Iterator[bytes]:
    """The bytes of the keys in a state directory: of PEM, what it encodes."""
    for path in (home / "material.key", home / "tls-identity.pem"):
        if path.exists():
            content = path.read_bytes()
            pem = re.findall(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", content, re.DOTALL)
            yield from (base64.b64decode(body) for body in pem) if pem else (content,)


def _forms(secret: bytes) -> Iterator[str]:
    """How the middle of a secret would be printed: in hexadecimal digits, in base64, as Python or Rust print bytes."""
    middle = secret[len(secret) // 4 :][:16]
    yield middle.hex()
    yield middle.hex().upper()
    for skipped in range(3):
        yield base64.b64encode(middle[skipped:][:12]).decode()
    yield repr(middle)[2:-1]
    yield ", ".join(map(str, middle))
