"""The tables of mode tabula: its paper gives the online phase alone, so the phases stand apart.

Activations are those that the Rust example `tabula_bench` prints with ``--json``: one document a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.circuits import CIRCUITS, LOOKUP, NETWORKS_OF_CIRCUITS, WORD
from bench.markdown import filled, ratio, size_of, time_of

#: The rows of a benchmark by phase.
Phases = Mapping[str, dict[str, Any]]


def online_table(measured: Iterable[Phases], circuits: Mapping[tuple[str, str], Phases]) -> str:
    """Tables 2 and 4: networks by phase, beside the paper's, its circuits, and our own.

    Args:
        measured: The rows of each network in this mode.
        circuits: Those of a mode of garbled circuits, by name and what is between the parties.
    """
    columns = (
        *("network", "between", "weights", "ReLUs", "offline", "online", "offline, bytes", "online, bytes"),
        *("rounds offline", "rounds online", "paper's online", "paper / ours", "paper's bytes", "paper / ours"),
        *("paper's circuits of 32, 16, 8 bits", "their bytes", "our circuits online", "their bytes online"),
    )
    return filled(columns, (_network(phases, circuits) for phases in measured))


def _network(phases: Phases, circuits: Mapping[tuple[str, str], Phases]) -> tuple[object, ...]:
    offline, online = phases["offline"], phases["online"]
    name, network = online["name"], online["network"]
    relus = ((phases["total"].get("work") or {}).get("relu") or {}).get("count")
    paper = online["paper"] or {}
    theirs = NETWORKS_OF_CIRCUITS.get(name)
    ours = circuits.get((name, network), {}).get("online", {})
    return (
        *(name, network, online["weights"], None if relus is None else f"{relus:,.0f}"),
        *(time_of(offline["seconds"]), time_of(online["seconds"]), size_of(offline["bytes"]), size_of(online["bytes"])),
        *(offline["rounds"], online["rounds"]),
        *(time_of(paper.get("seconds")), ratio(paper.get("seconds"), online["seconds"])),
        *(size_of(paper.get("bytes")), ratio(paper.get("bytes"), online["bytes"])),
        *(None if theirs is None else ", ".join(str(time_of(seconds)) for seconds in theirs[0]),),
        *(None if theirs is None else ", ".join(str(size_of(count)) for count in theirs[1]),),
        *(time_of(ours.get("seconds")), size_of(ours.get("bytes"))),
    )


def activations_table(lines: Sequence[dict[str, Any]]) -> str:
    """Tables 1 and 3 and figure 3: one ReLU with its rescale, by a lookup and by circuits."""
    columns = (
        *("ReLU with its rescale", "ring", "offline", "online", "offline, bytes", "online, bits", "rounds online"),
        *("kept by the client", "kept by the server", "paper's online", "paper / ours", "paper's bytes online"),
        *("paper / ours", "paper keeps", "paper / ours"),
    )
    return filled(columns, (_activation(line) for line in lines))


def _activation(line: dict[str, Any]) -> tuple[object, ...]:
    bits, dropped = line["bits"], line["dropped"]
    if line["name"] == "circuit":
        what = f"circuit, {bits} bits, {dropped} dropped"
        seconds, transferred, kept = CIRCUITS.get(bits, (None, None, None))
    else:
        what = f"{line['name']}, k = {bits - dropped}, d = {dropped}"
        (seconds, transferred), kept = LOOKUP, float(WORD << (bits - dropped))
    return (
        *(what, f"2^{line['ring']}", time_of(line["offline"]), time_of(line["online"])),
        *(size_of(line["offline_bytes"]), f"{8 * line['online_bytes']:.1f}", line["rounds"]),
        *(size_of(line["client_bytes"]), size_of(line["server_bytes"])),
        *(time_of(seconds), ratio(seconds, line["online"])),
        *(size_of(transferred), ratio(transferred, line["online_bytes"])),
        *(size_of(kept), ratio(kept, line["client_bytes"])),
    )
