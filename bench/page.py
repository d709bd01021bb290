"""Writes docs/benchmarks-data.md from the JSON documents of a run: every figure on the page is one of theirs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from bench.accuracy import accuracy_table
from bench.kernels import kernels_table, limits_table, operations_table
from bench.lookups import activations_table, online_table
from bench.markdown import filled, ratio, size_of, time_of
from bench.peers import peers_table
from bench.prose import (
    ACCURACY,
    ACTIVATIONS,
    COUNTS,
    ELSEWHERE,
    HOW,
    IMAGENET,
    INTRODUCTION,
    KERNELS,
    LAYERS,
    LIMITS,
    LOOKUPS,
    NETWORKS,
    ONLINE,
    OPERATIONS,
    PEERS,
    RECURRENT,
    SETUP,
    TRANSFORMERS,
    TREES,
    VERSIONS,
    WORDS,
    Words,
)
from bench.versions import versions_table
from lanner.network import read_network
from lanner.options import MODES

Rows = Sequence[dict[str, Any]]

Key = tuple[str, str | None, str, str | None, str]

#: The columns behind a benchmark's name, of `_key`.
_WHAT = ("rounding", "precision", "logit error", "between")

#: A load average from which on figures cannot be trusted.
BUSY = 0.5

#: Columns of a paragraph.
WIDTH = 118


def page(document: dict[str, Any]) -> str:
    """The page of a document that `bench.collect` made."""
    return "\n".join(_sections(document))


def _sections(document: dict[str, Any]) -> Iterator[str]:
    yield INTRODUCTION
    yield _machine(document)
    yield _failures(document["failures"])
    yield from (_paragraph(f"**{note}**") for note in document.get("notes", []))
    yield HOW
    for mode in MODES:
        if rows := [row for row in document["rows"] if row["mode"] == mode]:
            yield f"## Mode `{mode}`\n"
            # What models are by default comes first.
            rows.sort(key=lambda row: row.get("rounding") not in (None, "exact"))
            yield from _mode(rows, WORDS.get(mode, Words()))
            if mode == "tabula":
                yield from _lookups(rows, document)
            if lines := [line for line in document["lines"] if (line["bench"], line.get("mode")) == ("accuracy", mode)]:
                yield ACCURACY
                yield accuracy_table(lines)
    if lines := [line for line in document["lines"] if line["bench"] not in ("accuracy", "activation")]:
        yield OPERATIONS
        yield operations_table(lines)
        if limits := limits_table(lines):
            yield COUNTS
            yield limits
        yield KERNELS
        yield kernels_table(lines)
    for other in document.get("elsewhere", []):
        yield from _elsewhere(other)
    # A document that was written before there were comparisons has none.
    if document.get("peers") is not None:
        yield PEERS
        yield described(document["peers"]["machine"], [row["load"] for row in document["peers"]["rows"]], "")
        yield _failures(document["peers"]["failures"])
        yield peers_table(document["peers"]["rows"])
    if (versions := document.get("versions")) is not None:
        yield VERSIONS.format(before=versions["before"], now=versions["now"])
        yield described(versions["machine"], [row["load"] for row in versions["rows"]], "")
        yield versions_table(versions["rows"])
    yield LIMITS


def _elsewhere(document: dict[str, Any]) -> Iterator[str]:
    yield ELSEWHERE
    yield described(document["machine"], document["loads"], "")
    yield _commands(document)
    yield _failures(document["failures"])
    for mode in MODES:
        yield from _mode([row for row in document["rows"] if row["mode"] == mode], WORDS.get(mode, Words()))


def _mode(rows: Rows, words: Words) -> Iterator[str]:
    suites: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        suites.setdefault(row["suite"], []).append(row)
    if networks := suites.get("networks"):
        yield NETWORKS + words.networks
        yield _networks(networks)
        yield SETUP
        yield _setup(networks)
    if large := suites.get("imagenet"):
        yield IMAGENET
        yield _large(large)
    if recurrent := suites.get("recurrent"):
        yield RECURRENT
        yield _networks(recurrent)
    if transformers := suites.get("transformers"):
        yield TRANSFORMERS
        yield _networks(transformers)
    if trees := suites.get("trees"):
        yield TREES
        yield _networks(trees)
    if layers := suites.get("layers"):
        yield LAYERS + words.layers
        yield _layers(layers)
    if activations := suites.get("activations"):
        yield ACTIVATIONS + words.activations
        yield _activations(activations)


def _lookups(rows: Rows, document: dict[str, Any]) -> Iterator[str]:
    """What mode tabula is for: its phases apart, and its activations alone."""
    if networks := [row for row in rows if row["suite"] == "networks"]:
        circuits = [row for row in document["rows"] if (row["suite"], row["mode"]) == ("networks", "gazelle")]
        by_name = {(key[0], key[-1]): phases for key, phases in _by_phase(circuits).items()}
        yield ONLINE
        yield online_table(_by_phase(networks).values(), by_name)
    if lines := [line for line in document["lines"] if line["bench"] == "activation"]:
        yield LOOKUPS.format(values=lines[0]["n"])
        yield activations_table(lines)


def _machine(document: dict[str, Any]) -> str:
    text = described(document["machine"], document["loads"], ", and the relay of the emulated networks too")
    origin = (
        "`make bench` runs everything and writes this page. It is of these commands, and of the Rust examples of\n"
        "kernels where their sections follow:"
    )
    return f"{text}\n{origin}\n\n{_commands(document)}"


def _commands(document: dict[str, Any]) -> str:
    return "\n".join(f"    {command}" for command in document["commands"]) + "\n"


def described(machine: dict[str, Any], loads: Sequence[float], also: str) -> str:
    """The machine in words, and whether it was quiet."""
    features, memory = ", ".join(machine["features"]), size_of(machine["memory_bytes"])
    words = [
        f"Machine: {machine['processor']}, {machine['cores']} cores, {memory} of memory, with {features};",
        f"{machine['system']}, Python {machine['python']}, lanner {machine['lanner']}.",
        f"Both parties ran on it{also}.",
    ]
    busiest = max(loads, default=0.0)
    if busiest >= BUSY:
        words += [
            f"**It was not quiet: up to {busiest:.1f} processes of other work ran when a part began,",
            "so times are longer than they need be; bytes and rounds are exact.**",
        ]
    return _paragraph(" ".join(words))


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _failures(failures: Rows) -> str:
    if not failures:
        return "Every benchmark ran, and every result was right.\n"
    lines = (f"- `{failure['name']}`: {failure['error']['what']}" for failure in failures)
    return "**These benchmarks failed, and their rows are missing:**\n\n" + "\n".join(lines) + "\n"


def _by_phase(rows: Rows) -> dict[Key, dict[str, dict[str, Any]]]:
    """Rows by `_key`, then by phase, in their order."""
    found: dict[Key, dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(_key(row), {})[row["phase"]] = row
    return found


def _key(row: dict[str, Any]) -> Key:
    """Benchmark, rounding, precision, error and network, as the first columns of every table have them."""
    # Models had 8 bits before there was a choice, and their errors were not measured.
    error = row.get("logit_error")
    said = None if error is None else f"{error:.2%}"
    return row["name"], row.get("rounding"), row.get("precision") or "8 bits", said, row["network"]


def _given(row: dict[str, Any], source: str, what: str) -> float | None:
    figures = row[source]
    return None if figures is None else figures[what]


def _networks(rows: Rows) -> str:
    columns = (
        *(
            "network",
            *_WHAT,
            "weights",
            "offline",
            "online",
            "total",
            "fastest",
            "bytes",
            "rounds",
            "runs",
        ),
        *("line alone", "paper's total", "paper / ours", "paper's bytes", "paper / ours"),
    )
    return filled(columns, (_network(key, phases) for key, phases in _by_phase(rows).items()))


def _network(key: Key, phases: dict[str, dict[str, Any]]) -> tuple[object, ...]:
    total, network = phases["total"], key[-1]
    profile = read_network(network).profile if network in ("lan", "wan") else None
    line = None if profile is None else total["bytes"] * 8 / profile[0] + total["rounds"] * profile[1]
    seconds, transferred = _given(total, "paper", "seconds"), _given(total, "paper", "bytes")
    return (
        *(*key, total["weights"]),
        *(time_of(phases[phase]["seconds"]) for phase in ("offline", "online", "total")),
        *(time_of(total["fastest"]), size_of(total["bytes"]), total["rounds"], total["repeat"], time_of(line)),
        *(time_of(seconds), ratio(seconds, total["seconds"]), size_of(transferred), ratio(transferred, total["bytes"])),
    )


def _large(rows: Rows) -> str:
    columns = (
        *("network", *_WHAT, "weights", "multiply-accumulates", "values compared"),
        *("offline", "online", "total", "bytes", "rounds", "memory of both", "runs"),
        *("paper's total", "paper / ours", "paper's bytes", "paper / ours"),
    )
    return filled(columns, (_large_network(key, phases) for key, phases in _by_phase(rows).items()))


def _large_network(key: Key, phases: dict[str, dict[str, Any]]) -> tuple[object, ...]:
    total = phases["total"]
    seconds, transferred = _given(total, "paper", "seconds"), _given(total, "paper", "bytes")
    counts = ((total.get("work") or {}).get(kind, {}).get("count") for kind in ("linear", "activation"))
    return (
        *(*key, total["weights"]),
        *(None if count is None else f"{count / 1e6:,.1f} million" for count in counts),
        *(time_of(phases[phase]["seconds"]) for phase in ("offline", "online", "total")),
        *(size_of(total["bytes"]), total["rounds"], size_of(total.get("memory")), total["repeat"]),
        *(time_of(seconds), ratio(seconds, total["seconds"]), size_of(transferred), ratio(transferred, total["bytes"])),
    )


def _setup(rows: Rows) -> str:
    setups = [row for row in rows if row["phase"] == "setup"]
    cells = ((*_key(row), time_of(row["seconds"]), size_of(row["bytes"]), row["rounds"]) for row in setups)
    return filled(("network", *_WHAT, "time", "bytes", "rounds"), cells)


def _layers(rows: Rows) -> str:
    columns = (
        *(
            "layer",
            *_WHAT,
            "server online",
            "server offline",
            "wait online",
            "wait offline",
            "bytes",
            "rounds",
            "runs",
        ),
        *("paper", "paper / ours", "with offline", "public code", "code / ours", "with offline"),
    )
    return filled(columns, (_layer(key, phases) for key, phases in _by_phase(rows).items()))


def _layer(key: Key, phases: dict[str, dict[str, Any]]) -> tuple[object, ...]:
    online, offline, total = phases["online"], phases["offline"], phases["total"]
    paper, code = (_given(online, source, "seconds") for source in ("paper", "public_code"))
    return (
        *(*key, time_of(online["server_seconds"]), time_of(offline["server_seconds"])),
        *(time_of(online["seconds"]), time_of(offline["seconds"])),
        *(size_of(total["bytes"]), total["rounds"], total["repeat"]),
        *(time_of(paper), ratio(paper, online["server_seconds"]), ratio(paper, total["server_seconds"])),
        *(time_of(code), ratio(code, online["server_seconds"]), ratio(code, total["server_seconds"])),
    )


def _activations(rows: Rows) -> str:
    columns = (
        *("activation", *_WHAT, "phase", "wait", "server", "bytes", "rounds", "runs"),
        *("paper", "paper / ours", "paper's bytes", "paper / ours", "public code's bytes", "code / ours"),
    )
    parts = [row for row in rows if row["phase"] in ("offline", "online")]
    return filled(columns, (_activation(row) for row in parts))


def _activation(row: dict[str, Any]) -> tuple[object, ...]:
    seconds, transferred = _given(row, "paper", "seconds"), _given(row, "paper", "bytes")
    code = _given(row, "public_code", "bytes")
    # The server may garble while the client is still in the step before.
    ours = max(row["seconds"], row["server_seconds"])
    return (
        *(*_key(row), row["phase"], time_of(row["seconds"]), time_of(row["server_seconds"])),
        *(size_of(row["bytes"]), row["rounds"], row["repeat"]),
        *(time_of(seconds), ratio(seconds, ours), size_of(transferred), ratio(transferred, row["bytes"])),
        *(size_of(code), ratio(code, row["bytes"])),
    )
