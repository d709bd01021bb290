"""The tables of operations and kernels: what the Rust examples print, beside the GAZELLE paper's tables V to X.

The examples are `ring_bench`, `kernels`, `layer_bench` and `gc_bench` with `--json`: one document a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.markdown import ratio, size_of, table, time_of

Lines = Sequence[dict[str, Any]]

#: What the paper calls an operation, its table and microseconds there, our name for it, and how many of it ours does.
OPERATIONS = (
    ("encrypt", "Encrypt, VI", 186.0, "encrypt", 1),
    ("decrypt", "Decrypt, VI", 125.0, "decrypt", 1),
    ("add two ciphertexts", "SIMDAdd, VI", 5.0, "add two ciphertexts", 1),
    ("multiply by a plaintext", "SIMDScMult, VI", 10.0, "multiply by a factor", 1),
    ("generate the keys of a party", "KeyGen, VI", 232.0, "generate a key pair", 1),
    ("generate a rotation's key", "PermKeyGen, VI and VII", 466.0, "generate 60 evaluation keys", 60),
    ("rotate", "Perm, VI", 268.0, "rotate", 1),
    ("rotate what is decomposed already", "PermAuto, VI and VII", 35.0, "rotate hoisted", 1),
    ("seal an output: noise and function hidden", None, None, "seal", 1),
    ("a product with the paper's windows of 20 bits", None, None, "product with the paper's windows of 20 bits", 1),
    ("a product with the paper's windows of 10 bits", None, None, "product with the paper's windows of 10 bits", 1),
)

#: Bytes of a rotation's key with three windows, table VII.
PAPER_KEY_BYTES = 49_150

#: Server's online milliseconds by layer and kernel: tables VIII and X.
KERNELS = {
    ("fc 2048 -> 1", "naive"): 7.9,
    ("fc 2048 -> 1", "diagonal"): 383.3,
    ("fc 2048 -> 1", "hybrid"): 8.0,
    ("fc 1024 -> 128", "naive"): 880.0,
    ("fc 1024 -> 128", "diagonal"): 192.4,
    ("fc 1024 -> 128", "hybrid"): 16.2,
    ("fc 1024 -> 16", "naive"): 110.3,
    ("fc 1024 -> 16", "diagonal"): 192.4,
    ("fc 1024 -> 16", "hybrid"): 7.8,
    ("fc 128 -> 16", "naive"): 77.4,
    ("fc 128 -> 16", "diagonal"): 25.4,
    ("fc 128 -> 16", "hybrid"): 5.3,
    ("conv 28x28x1 5x5/2 -> 5", "input-rotations"): 14.4,
    ("conv 28x28x1 5x5/2 -> 5", "output-rotations"): 9.2,
    ("conv 16x16x128 1x1 -> 128", "input-rotations"): 107.0,
    ("conv 16x16x128 1x1 -> 128", "output-rotations"): 110.0,
    ("conv 32x32x32 3x3 -> 32", "input-rotations"): 208.0,
    ("conv 32x32x32 3x3 -> 32", "output-rotations"): 195.0,
}

#: Vector multiply-adds that a processor begins in a cycle, and the values of a vector.
MULTIPLY_ADDS = 2
LANES = {"Avx2": 4, "Avx512": 8}

#: Of each transform: its name in a line, what it is, and its vector multiply-adds in a butterfly.
TRANSFORMS = (
    ("forward", "transform modulo a prime of 50 bits", 5),
    ("inverse", "its inverse", 5),
    ("forward, 40 bits", "transform modulo a prime of 40 bits", 3),
    ("inverse, 40 bits", "its inverse", 3),
)

#: Of each rotation in set B, three primes and a special one: its name in a line, what it is, its transforms forward
#: and inverse. Each takes the inner products of three digits with both halves of a key modulo four primes.
ROTATIONS = (
    ("rotate", "rotate", 15, 5),
    ("rotate hoisted", "rotate what is decomposed already", 6, 2),
    ("rotate hoisted, extended", "the same, before the division that a sum of such shares", 0, 0),
)
KEY_PRODUCTS = 24

#: Of each side of garbling: its kernel's name, what it is, and its AES blocks an AND gate.
GATES = (("garble", "garble ReLU with rescaling, ANDs a second", 4), ("evaluate", "evaluate it, ANDs a second", 2))


def operations_table(lines: Lines) -> str:
    """Tables V to VII and IX."""
    rows = [
        _transform(lines, *transform)
        for transform in (("forward", "NTT (q), V", 57.0), ("inverse", "Inv. NTT (q), V", 54.0))
    ]
    timed = {line["name"]: line for line in lines if line["bench"] == "bfv"}
    for ours, theirs, micros, name, count in OPERATIONS:
        line = timed[name]
        seconds = line["seconds"] / count
        given = None if micros is None else micros / 1e6
        rows.append((ours, line["n"], time_of(seconds), theirs, time_of(given), ratio(given, seconds)))
    keys = timed["60 evaluation keys"]
    key = keys["bytes"] / 60
    paper = (size_of(PAPER_KEY_BYTES), ratio(PAPER_KEY_BYTES, key))
    rows.append(("bytes of a rotation's key", keys["n"], size_of(key), "key size, VII", *paper))
    return table(("operation", "n", "ours", "the paper's name, table", "paper, n = 2048", "paper / ours"), rows)


def limits_table(lines: Lines) -> str | None:
    """What kernels reach beside the limit of the operations they are made of; None if a line for it is missing."""
    timed = {(line["bench"], line["name"], line.get("kernel"), line.get("n")): line for line in _fastest(lines)}
    try:
        cycle = timed["ring", "cycle", None, None]["seconds"]
        backend = timed["ring", "forward", None, 2048]["backend"]
        add = cycle / MULTIPLY_ADDS / LANES.get(backend, 1)
        rows = []
        for name, what, adds in TRANSFORMS:
            for n in (2048, 4096, 8192):
                butterflies = n // 2 * (n.bit_length() - 1)
                counted = f"{butterflies} butterflies of {adds} multiply-adds"
                rows.append(
                    _limited(what, n, timed["ring", name, None, n]["seconds"], butterflies * adds * add, counted)
                )
        n = 8192
        forward, inverse = (timed["ring", name, None, n]["seconds"] for name in ("forward", "inverse"))
        for name, what, forwards, inverses in ROTATIONS:
            limit = forwards * forward + inverses * inverse + KEY_PRODUCTS * n * 2 * add
            counted = f"{forwards + inverses} transforms, {KEY_PRODUCTS} multiply-accumulates of polynomials"
            rows.append(_limited(what, n, timed["bfv", name, None, n]["seconds"], limit, counted))
        blocks = timed["gc", "aes", "counter", None]["per_second"]
        for kernel, what, each in GATES:
            reached = timed["gc", "relu_rescale", kernel, None]["per_second"]
            counts = (f"{reached / 1e6:.0f} M", f"{blocks / each / 1e6:.0f} M", ratio(blocks / each, reached))
            rows.append((what, None, *counts, f"{each} AES blocks"))
    except KeyError:
        return None
    return table(("kernel", "n", "reached", "limit", "reached / limit", "counted"), rows)


def kernels_table(lines: Lines) -> str:
    """Tables VIII and X: every kernel, each with its fastest split into baby steps and giant steps."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for line in (line for line in lines if line["bench"] == "layer"):
        key = (line["name"], line["kernel"])
        if key not in best or _server(line) < _server(best[key]):
            best[key] = line
    layers = {name for name, _ in KERNELS}
    absent: dict[tuple[str, str], dict[str, Any]] = {key: {} for key in KERNELS if key not in best}
    found = {key: line for key, line in best.items() if key[0] in layers}
    order = list(dict.fromkeys(name for name, _ in KERNELS))
    every = sorted({**found, **absent}.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    columns = (
        "layer",
        "kernel",
        "rotations",
        "products",
        "server online",
        "server offline",
        "client",
        "paper's server online",
        "paper / ours",
        "paper / ours with offline",
    )
    return table(columns, (_kernel(key, line) for key, line in every))


def _transform(lines: Lines, name: str, theirs: str, micros: float) -> tuple[object, ...]:
    """The fastest backend's transform of the paper's length."""
    of_paper = [line for line in lines if line["bench"] == "ring" and line["name"] == name and line["n"] == 2048]
    best = min(of_paper, key=lambda line: float(line["seconds"]))
    direction = {"forward": "number-theoretic transform", "inverse": "its inverse"}[name]
    seconds = best["seconds"]
    return (
        f"{direction}, {best['backend']}",
        2048,
        time_of(seconds),
        theirs,
        time_of(micros / 1e6),
        ratio(micros / 1e6, seconds),
    )


def _fastest(lines: Lines) -> Lines:
    """The lines of the fastest backend, by its forward transform and by its ReLU, and those that know of none."""
    best = {}
    for bench, name, kernel in (("ring", "forward", None), ("gc", "relu_rescale", "garble")):
        tried = [line for line in lines if (line["bench"], line["name"], line.get("kernel")) == (bench, name, kernel)]
        if tried:
            best[bench] = min(tried, key=lambda line: line.get("seconds") or 1 / line["per_second"])["backend"]
    return [line for line in lines if line.get("backend") in (None, "fastest", best.get(line["bench"]))]


def _limited(what: str, n: int, reached: float, limit: float, counted: str) -> tuple[object, ...]:
    return (what, n, time_of(reached), time_of(limit), ratio(reached, limit), counted)


def _kernel(key: tuple[str, str], line: dict[str, Any]) -> tuple[object, ...]:
    given = KERNELS.get(key)
    paper = None if given is None else given / 1e3
    if not line:
        return (*key, None, None, None, None, None, time_of(paper), None, None)
    online, offline = line["server_online"] / 1e3, line["server_offline"] / 1e3
    client = (line["client_online"] + line["client_offline"]) / 1e3
    rotations = line["hoisted"] + line["rotations"]
    times = (time_of(online), time_of(offline), time_of(client))
    return (
        *key,
        rotations,
        line["products"],
        *times,
        time_of(paper),
        ratio(paper, online),
        ratio(paper, online + offline),
    )


def _server(line: dict[str, Any]) -> float:
    return float(line["server_online"] + line["server_offline"])
