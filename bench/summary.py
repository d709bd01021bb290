"""Writes docs/benchmarks.md, a table for each question, from the document that `bench.collect` made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.markdown import filled, ratio, size_of, time_of
from bench.page import described

Row = dict[str, Any]

#: What a network is, in the order of the first table.
NETWORKS = {
    "mnist_d": "handwritten digits, a small convolutional network",
    "pneumonia": "chest X-rays of 28x28 pixels",
    "cifar10_minionn": "CIFAR-10, seven convolutions",
    "resnet32": "CIFAR-10, ResNet-32",
    "vgg16": "CIFAR-100, VGG-16",
    "resnet34": "CIFAR-100, ResNet-34",
    "alexnet": "ImageNet, AlexNet",
    "resnet18": "ImageNet, ResNet-18",
    "mobilenet_v2": "ImageNet, MobileNetV2",
    "squeezenet": "ImageNet, SqueezeNet",
    "resnet50": "ImageNet, ResNet-50",
    "densenet121": "ImageNet, DenseNet-121",
    "fastgrnn_usps": "digits, FastGRNN of 16 steps",
    "lstm_keywords": "spoken keywords, LSTM",
    "fastgrnn_google30": "spoken keywords, FastGRNN of 99 steps",
    "trees_forest_50x5": "a table's row, random forest of 50 trees",
    "trees_xgboost_100x6": "a table's row, XGBoost of 100 trees",
    "trees_xgboost_100x6_1000_rows": "one of 1,000 rows in a request, XGBoost of 100 trees",
    "trees_lightgbm_5x500x31": "a table's row, LightGBM of 2,500 trees",
    "encoder_2x128_128": "128 tokens, the encoder of BERT-tiny's size",
    "encoder_6x384_128": "128 tokens, the encoder of MiniLM-L6's size",
    "encoder_12x768_128": "128 tokens, the encoder of BERT-base's size",
    "decoder_12x768_64": "64 tokens, the decoder of GPT-2 small's size",
    "vision_12x768_224": "ImageNet, the size of ViT-base",
}

#: The network by which modes and links are compared.
COMPARED = "mnist_d"

LINKS = ("loopback", "lan", "wan")

INTRODUCTION = """# Benchmarks

What a prediction costs. To estimate your own model over your link, use `lanner estimate`. `make bench` repeats the
measurements; [all figures](benchmarks-data.md) has every row, the method, layers, kernels and accuracy.

Times are wall time at the client. **Offline** work needs no input and can be done ahead (`lanner prepare`); **online**
work needs the input; **total** is a call that does both. A session's set-up comes on top, once. Traffic counts TCP in
both directions. Both parties shared two cores and used TLS; `lan` emulates 1 Gbit/s and 0.6 ms, `wan` 100 Mbit/s and
40 ms. Every result equalled the fixed-point reference.

**Build** is a row's version. Compare times within one build only; traffic and rounds do not depend on the machine.
"""

COSTS = """## What does one prediction cost?

Each row shows the fastest mode on one machine. Random weights cost the same as trained ones, but their scores mean
nothing. The row of 1,000 rows gives the total of the request, divided by 1,000; offline and online overlap there.
"""

MODES = """## Which mode, over which link?

The network `{network}`. [Choose a mode](how-to/choose-a-mode.md) explains which column matters.
"""

PAPERS = """## How does it compare with the papers?

Each row uses the paper's kind of link, or loopback where that was not measured: compare only the traffic then. Above
1x, lanner needs less. The papers' machines are years older, so read times as orders of magnitude.
"""

PEERS = """## How does it compare with another system?

Mode `cheetah` and the Cheetah protocol of [SecretFlow-SPU](https://github.com/secretflow/spu) ran by turns on one
machine ([how](benchmarks-data.md#beside-another-system)). **Error** is the largest difference from the float network's
output. SPU's time leaves out TLS, sharing the image and revealing the outputs; ours has all three. These
networks were compiled for bits, some with random weights: [all figures](benchmarks-data.md#beside-another-system) say
which. So their traffic differs from that above. Above 1x, lanner needs less.
"""

LIMITS = """## What limits the speed?

- **Traffic**, over slow lines. In modes `gazelle`, `falcon` and `tabula` most of it is offline and can be sent ahead.
- **Rounds**, over `wan`: each costs 40 ms. Mode `cheetah` needs up to eight per layer, so rounds show over `lan` too.
- **Computing**, over `lan` and loopback: key switching in mode `gazelle`, garbling in `gazelle` and `falcon`,
  oblivious transfers in `cheetah`.
- **Memory bandwidth**, in layers with large weights, read once per prediction.
"""


def summary(document: dict[str, Any]) -> str:
    """The page of a document."""
    return "\n".join(_sections(document))


def _sections(document: dict[str, Any]) -> Iterator[str]:
    totals = _measured(document)
    yield INTRODUCTION
    yield from _builds(document)
    if costs := list(_costs(totals)):
        yield COSTS
        yield filled(
            ("network", "what it is", "mode", "offline", "online", "total", "traffic", "rounds", "weights", "build"),
            costs,
        )
    if modes := list(_modes(totals)):
        yield MODES.format(network=COMPARED)
        yield filled(("mode", "between", "offline", "online", "total", "traffic", "rounds", "build"), modes)
    if papers := list(_papers(totals)):
        yield PAPERS
        beside = ("network", "mode", "between", "paper", "total", "faster", "traffic", "less traffic", "build")
        yield filled(beside, papers)
    if document.get("peers"):
        yield PEERS
        columns = ("network", "system", "total", "traffic", "error", "faster", "less traffic", "build")
        yield filled(columns, _peers(document["peers"]))
    yield LIMITS


def _measured(document: dict[str, Any]) -> list[dict[str, Row]]:
    """The phases of each benchmark of whole networks, each row with its build."""
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for machine in (document, *document.get("elsewhere", [])):
        for row in machine["rows"]:
            if row["suite"] in ("layers", "activations"):
                continue
            key = tuple(row[name] for name in ("suite", "name", "mode", "rounding", "network"))
            found.setdefault(key, {})[row["phase"]] = {**row, "build": _build(row, machine["machine"])}
    exact = [phases for (*_, rounding, _), phases in found.items() if rounding in (None, "exact")]
    return [phases for phases in exact if "total" in phases]


def _build(row: Row, machine: Row) -> str:
    """The version, with the commit where the row has one of its own."""
    return f"{machine['lanner']}, {row['build']}" if row.get("build") else str(machine["lanner"])


def _builds(document: dict[str, Any]) -> Iterator[str]:
    for machine in (document, *document.get("elsewhere", [])):
        yield described(machine["machine"], machine["loads"], "")


def _cost(phases: dict[str, Row]) -> tuple[object, ...]:
    total = phases["total"]
    times = (time_of(phases[phase]["seconds"]) for phase in ("offline", "online", "total"))
    return (*times, size_of(total["bytes"]), total["rounds"])


def _costs(totals: Sequence[dict[str, Row]]) -> Iterator[tuple[object, ...]]:
    for name, what in NETWORKS.items():
        rows = [each for each in totals if (each["total"]["name"], each["total"]["network"]) == (name, "loopback")]
        for phases in sorted(rows, key=lambda each: float(each["total"]["seconds"]))[:1]:
            total = phases["total"]
            yield (f"`{name}`", what, f"`{total['mode']}`", *_cost(phases), total["weights"], total["build"])


def _modes(totals: Sequence[dict[str, Row]]) -> Iterator[tuple[object, ...]]:
    rows = [phases for phases in totals if phases["total"]["name"] == COMPARED]
    for link in LINKS:
        over = [phases for phases in rows if phases["total"]["network"] == link]
        for phases in sorted(over, key=lambda each: float(each["total"]["seconds"])):
            total = phases["total"]
            yield (f"`{total['mode']}`", link, *_cost(phases), total["build"])


def _papers(totals: Sequence[dict[str, Row]]) -> Iterator[tuple[object, ...]]:
    beside: dict[tuple[object, ...], Row] = {}
    for total in (phases["total"] for phases in totals if phases["total"]["paper"]):
        paper = total["paper"]
        key = (total["name"], total["mode"], paper["source"], paper["place"])
        wanted = "wan" if "WAN" in paper["place"] else "lan"
        if key not in beside or total["network"] == wanted:
            beside[key] = total
    for total in beside.values():
        paper = total["paper"]
        yield (
            *(f"`{total['name']}`", f"`{total['mode']}`", total["network"], f"{paper['source']}, {paper['place']}"),
            *(time_of(total["seconds"]), ratio(paper["seconds"], total["seconds"])),
            *(size_of(total["bytes"]), ratio(paper["bytes"], total["bytes"]), total["build"]),
        )


def _peers(peers: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for row in peers["rows"]:
        *ours, theirs = row["systems"]
        for system in (*ours, theirs):
            is_theirs = system is theirs
            yield (
                *(f"`{row['name']}`", system["system"], time_of(system["seconds"]), size_of(system["bytes"])),
                f"{system['error']:.2g}",
                None if is_theirs else ratio(theirs["seconds"], system["seconds"]),
                None if is_theirs else ratio(theirs["bytes"], system["bytes"]),
                None if is_theirs else _build(row, peers["machine"]),
            )
