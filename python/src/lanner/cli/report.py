"""A compiled model as a person reads it: sentences, units, real numbers instead of integers and their scales."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lanner.cli.output import TEXT_WIDTH, Output, size
from lanner.cli.repeated import together
from lanner.columns import Column, names_of
from lanner.manifest import InputDescription, Manifest
from lanner.named import NamedInput
from lanner.wording import counted

#: Names of the parts of the report's ``leakage`` for people.
_LEARNS = {
    "client": "client",
    "saturation": "saturation",
    "rounding": "rounding",
    "ciphertexts": "ciphertexts",
    "text": "texts",
    "server": "server",
    "cheating": "clients that cheat",
    "assumed": "assumed",
    "not_protected": "not protected",
}

#: What a step does, in the order of interest; what is not among them is not shown.
_COUNTS = (
    ("instances", "instance"),
    ("and_gates", "AND gate"),
    ("transfers", "transfer"),
    ("multiplications", "product"),
    ("rotations", "rotation"),
)

#: More values without a proof than these are not named.
_MOST_NAMES = 6

#: How the names of protocols that send nothing begin.
_LOCAL = "local."

#: More room than this is not told.
_MOST_SPARE = 100

#: What a party's memory is for.
_MEMORY = {
    "bytes": "for the model",
    "bytes_per_session": "for each session",
    "bytes_per_prediction": "for each prediction",
    "bytes_per_prepared_prediction": "for each that is prepared",
    "bytes_at_work": "at work",
}

#: What keeps a value within its ring: in a word, and told.
_ROOM = {
    "proved": ("proved", "no input that is accepted leads to an overflow"),
    "implied": ("implied", "it cannot overflow unless a value before it does"),
    "calibrated": ("2x", "the ring holds twice the largest value in the samples (3x: three times, and so on)"),
}


def show_identity(manifest: Manifest, rounding: str | None, output: Output) -> None:
    """Print what a model is: name, mode, policy, input, classes, commitment."""
    classes = None if manifest.classes is None else ", ".join(manifest.classes)
    lines = [
        ("title", manifest.title),
        ("note", manifest.note),
        ("mode", manifest.mode),
        ("rounding", rounding),
        ("output", policy_of(manifest)),
        ("input", input_of(manifest.input)),
        ("pictures", None if manifest.image is None else "the client makes inputs of PNG and JPEG files"),
        ("texts", texts_of(manifest)),
        ("classes", classes),
        ("commitment", manifest.commitment),
    ]
    output.section(f"Model {manifest.name}", lines)


def texts_of(manifest: Manifest) -> str | None:
    """What a client does with a text; None where it takes none."""
    text = manifest.input.text
    if text is None:
        return None
    told = text.tokenizer
    capitals = "in small letters" if told["lowercases"] else "with its capitals"
    tokens = counted(int(told["tokens"]), "token")
    return f"the client reads them {capitals} by {told['kind']} of {tokens}, and makes each {text.length} tokens long"


def policy_of(manifest: Manifest) -> str:
    """What the client learns, in a few words."""
    if manifest.digits is not None:
        return f"{manifest.output} ({counted(manifest.digits, 'decimal digit')})"
    if manifest.places is not None:
        return f"label of each place ({' x '.join(map(str, manifest.places))})"
    return manifest.output


def input_of(entry: InputDescription) -> str:
    """An input's name, shape and accepted range, or those of each of several."""
    if entry.named:
        return ", ".join(_described(each, entry) for each in entry.named)
    values = (
        f"values from {entry.low:.4g} to {entry.high:.4g}"
        if entry.features is None
        else "each feature in its own range"
    )
    return f"{entry.name} {entry.shape}, {values}"


def columns_of(columns: Sequence[Column]) -> str:
    """How many columns a table has, and their names, where they have some."""
    names, more = names_of(columns), ", ..." if len(columns) > _MOST_NAMES else ""
    told = "" if names is None else f": {', '.join(names[:_MOST_NAMES])}{more}"
    return f"a table of {counted(len(columns), 'column')}{told}"


def _described(named: NamedInput, entry: InputDescription) -> str:
    if named.columns is not None:
        return f"{named.name}, {columns_of(named.columns)}"
    if named.choices is not None:
        public = "" if named.embeddings is None else ", looked up in a public table"
        return f"{named.name} {named.shape} of whole numbers from 0 to {named.choices - 1}{public}"
    if entry.features is not None:
        return f"{named.name} {named.shape}"
    low, high = entry.low / named.factor, entry.high / named.factor
    return f"{named.name} {named.shape} with values from {low:.4g} to {high:.4g}"


def show_known(report: Mapping[str, Any], output: Output) -> dict[str, Any]:
    """Print what is known of a compiled model; returns the members of the report that this says nothing of."""
    rest = dict(report)
    # Both are told with the model itself.
    rest.pop("mode", None)
    rest.pop("rounding", None)
    if rest.get("samples_per_request") == 1:
        del rest["samples_per_request"]
    leakage = rest.pop("leakage")
    learns = [(_LEARNS.get(name, _words(name)), leakage[name]) for name in (*_LEARNS, *leakage) if name in leakage]
    output.section("What each party learns", list(dict(learns).items()))
    _show_security(rest, output)
    _show_memory(rest.pop("memory"), output)
    calibration = rest.pop("calibration")
    aside, made = calibration["samples_set_aside"], calibration["inputs_made"]
    given_up = calibration.get("inputs_given_up", 0)
    lines = [
        ("", f"{counted(aside, 'sample')} set aside, far from all others" if aside else ""),
        ("", f"{counted(made, 'input')} of lanner's own making beside the samples" if made else ""),
        ("", f"no room for {counted(given_up, 'input')} of lanner's own making" if given_up else ""),
        ("", _proofs(rest.pop("unproved"), len(rest["values"]))),
    ]
    output.section("Calibration", lines)
    _show_precision(rest.pop("precision", None), output)
    # The table of values has the bits too.
    rest.pop("bits", None)
    _show_features(rest.pop("features", []), output)
    _show_layers(rest.pop("steps"), output)
    _show_lookups(rest.pop("lookups", None) or [], output)
    _show_values(rest.pop("values"), output)
    return rest


def _proofs(unproved: Sequence[str], values: int) -> str:
    """Whether accepted inputs far from the samples can overflow, and where."""
    if not unproved:
        return "no accepted input can overflow: every value is proved to stay in its ring"
    names = ", ".join(unproved[:_MOST_NAMES]) + (", ..." if len(unproved) > _MOST_NAMES else "")
    return (
        f"{len(unproved)} of {values} values are not proved to stay in their rings: "
        f"inputs far from the samples may overflow in {names}"
    )


def _show_security(rest: dict[str, Any], output: Output) -> None:
    parts = ", ".join(f"{part['name']} {part['bits']} bits" for part in rest.pop("security"))
    distance, sets = rest.pop("statistical_distance"), rest.pop("parameters")
    count, predictions = distance["ciphertexts_per_prediction"], round(math.log2(distance["predictions"]))
    hidden = f"masks are uniform: no distance, with {count} ciphertexts a prediction"
    if distance["bits"] is not None:
        hidden = (
            f"2^-{distance['ciphertext_bits']:g} for each of {count} ciphertexts a prediction, "
            f"2^-{distance['bits']:g} over 2^{predictions} predictions"
        )
    chosen = ", ".join(f"{each['set']} ({_keys(each)})" for each in sets)
    lines = [("strength", parts), ("statistical distance", hidden if count else None), ("parameter sets", chosen)]
    output.section("Security", lines)


def _keys(parameters: Mapping[str, Any]) -> str:
    keys = parameters["evaluation_keys"]
    return f"degree {parameters['degree']}" + (f", {counted(keys, 'evaluation key')}" if keys else "")


def _show_memory(memory: Mapping[str, int], output: Output) -> None:
    def of(party: str) -> str:
        counts = {name: memory.get(f"{party}_{name}") for name in _MEMORY}
        if counts["bytes_per_prepared_prediction"] == counts["bytes_per_prediction"]:
            del counts["bytes_per_prepared_prediction"]
        return ", ".join(f"{size(count)} {_MEMORY[name]}" for name, count in counts.items() if count)

    output.section("Memory", [(party, of(party)) for party in ("server", "client")])


def _show_precision(precision: Mapping[str, Any] | None, output: Output) -> None:
    if precision is None:
        return
    samples, kept = precision["samples"], precision["labels_kept"]
    lines = [
        ("asked", precision["asked"]),
        ("reached", f"logits off by at most {precision['reached']} of their range on {counted(samples, 'sample')}"),
        # Values have no labels to keep or to lose.
        ("labels", f"as the float network's on {kept} of {samples}" if kept or precision["labels_lost"] else None),
    ]
    output.section("Precision", lines)


def _show_features(features: Sequence[Mapping[str, Any]], output: Output) -> None:
    constants = any("factor" in feature for feature in features)
    rows = [
        (
            feature["name"],
            f"{feature['low']:.4g} to {feature['high']:.4g}",
            f"{feature['unit']:.3g}",
            f"{feature['centre']:.4g}",
            *((f"{feature['factor']:.6g}", f"{feature['term']:.6g}") if constants else ()),
        )
        for feature in features
    ]
    columns = ("feature", "accepted", "unit", "centre", *(("published factor", "published term") if constants else ()))
    output.table(columns, rows, "Features", width=TEXT_WIDTH)


def _show_layers(steps: Sequence[Mapping[str, Any]], output: Output) -> None:
    """What a prediction takes, all steps of a loop together; steps that send nothing are counted alone."""
    spoken = [step for step in steps if not step["protocol"].startswith(_LOCAL)]
    rows = []
    for name, places in together(_names(spoken), [step["protocol"] for step in spoken]):
        group = [spoken[place] for place in places]
        rows.append((name, group[0]["protocol"], _rings(group), _work(group)))
    output.table(("layer", "protocol", "ring bits", "work of one prediction"), rows, "Layers", width=TEXT_WIDTH)
    alone = len(steps) - len(spoken)
    if alone:
        output.section("", [("", f"and {counted(alone, 'step')} that each party computes alone")])


def _show_lookups(lookups: Sequence[Mapping[str, Any]], output: Output) -> None:
    rows = [
        (name, *(_between([lookups[place][count] for place in places]) for count in ("kept", "dropped")))
        for name, places in together(_names(lookups))
    ]
    output.table(("lookup", "bits kept", "bits dropped"), rows, "Lookups", width=TEXT_WIDTH)


def _between(counts: Sequence[int]) -> str:
    """The smallest and the largest, or the one that all are."""
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}..{max(counts)}"


def _rings(steps: Sequence[Mapping[str, Any]]) -> str | None:
    """Bits of the rings of a step's input and, where it differs, output; of steps that differ, the ends of both."""
    rings = [[step[name] for name in ("ring", "output_ring") if step.get(name) is not None] for step in steps]
    bits = [[(int(modulus) - 1).bit_length() for modulus in pair] for pair in rings]
    if all(pair == bits[0] for pair in bits):
        return " to ".join(map(str, bits[0])) or None
    every = [width for pair in bits for width in pair]
    return f"{min(every)}..{max(every)}"


def _work(steps: Sequence[Mapping[str, Any]]) -> str:
    def total(name: str) -> int:
        return sum(step.get(name) or 0 for step in steps)

    told = [counted(total(name), noun) for name, noun in _COUNTS if total(name)]
    if "input_ciphertexts" in steps[0]:
        told.append(f"{counted(total('input_ciphertexts'), 'ciphertext')} in, {total('output_ciphertexts')} out")
    return ", ".join(told)


def _show_values(values: Sequence[Mapping[str, Any]], output: Output) -> None:
    rows = [_row(name, [values[place] for place in places]) for name, places in together(_names(values))]
    columns = ("value", "seen in samples", "possible", "bits", "weight bits", "room")
    output.table(columns, rows, "Values", width=TEXT_WIDTH)
    kinds = {value["evidence"] for value in values}
    output.section("Room before an overflow", [(name, text) for kind, (name, text) in _ROOM.items() if kind in kinds])
    fitted = [value for value in values if value["function"]]
    fits = [(name, max(fitted[at]["function"]["error"] for at in places)) for name, places in together(_names(fitted))]
    told = [(name, f"off by {error:.2f} of a unit of its integers at most") for name, error in fits]
    output.section("Functions by polynomials", told)


def _names(values: Sequence[Mapping[str, Any]]) -> list[str]:
    return [value["name"] for value in values]


def _row(name: str, values: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    """What is known of a value, or of all steps' together: the widest range, and the least room."""
    scaled = [(value, value["scale"]) for value in values]
    seen = [[end * scale for end in value["calibrated"]] for value, scale in scaled]
    possible = [[value["low"] * scale, value["high"] * scale] for value, scale in scaled]
    weights = [value["weights"]["bits"] for value in values if value["weights"]]
    tightest = min(values, key=_spare)
    return (
        name,
        _ends(seen),
        _ends(possible),
        max(int(max(abs(value["low"]), abs(value["high"]))).bit_length() for value in values),
        min(weights, default=None),
        _margin(tightest),
    )


def _ends(ranges: Sequence[Sequence[float]]) -> str:
    lows, highs = zip(*ranges, strict=True)
    return f"{min(lows):.3g} to {max(highs):.3g}"


def _spare(value: Mapping[str, Any]) -> float:
    """How far beyond the largest value seen a ring reaches; without end where it is proved that it need not."""
    seen = max(map(abs, value["calibrated"]))
    return math.inf if value["evidence"] != "calibrated" or seen == 0 else value["limit"] / seen


def _margin(value: Mapping[str, Any]) -> str:
    """What keeps a value from overflowing: a proof, or how far beyond the largest one seen its ring reaches."""
    if value["evidence"] != "calibrated":
        return _ROOM[value["evidence"]][0]
    spare = _spare(value)
    return "over 100x" if spare >= _MOST_SPARE else f"{spare:.1f}x"


def _words(name: str) -> str:
    return name.replace("_", " ")
