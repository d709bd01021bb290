"""Takes from Kubernetes' own JSON schemas what the kinds in deploy/ need, for the tests to hold them against.

    python tools/kubernetes_schema.py DEFINITIONS.json

The definitions are those of the package kubernetes-validate (Apache-2.0), which refuse a field that they do not know:
``kubernetes-json-schema/v1.30.0-local-strict/_definitions.json`` in it. What people read is left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: A part of a JSON document.
Json = Any

SCHEMA = Path(__file__).parent / "tests" / "schemas" / "kubernetes.json"

#: The definition of each kind, by its version and name.
KINDS = {
    "apps/v1 Deployment": "io.k8s.api.apps.v1.Deployment",
    "apps/v1 StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "autoscaling/v2 HorizontalPodAutoscaler": "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    "networking.k8s.io/v1 NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "policy/v1 PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "v1 Service": "io.k8s.api.core.v1.Service",
}

COMMENT = (
    "Definitions of Kubernetes 1.30, the oldest version that the chart takes, as kubernetes-validate has them in its "
    "strict form; Copyright The Kubernetes Authors, Apache-2.0. Without descriptions, by tools/kubernetes_schema.py."
)


def excerpt(definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions that the kinds reach, and a schema for each kind."""
    kept: dict[str, Any] = {}
    wanted = list(KINDS.values())
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = without_words(definitions[name])
            wanted += references(kept[name])
    kinds = {kind: {"$ref": f"#/$defs/{name}"} for kind, name in KINDS.items()}
    return {"$comment": COMMENT, "kinds": kinds, "$defs": dict(sorted(kept.items()))}


def without_words(part: object) -> Json:
    """A part of a schema with references into the excerpt, and without descriptions and Kubernetes' own notes."""
    if isinstance(part, list):
        return [without_words(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: re.sub(r".*#", "#", value) if key == "$ref" else without_words(value)
        for key, value in part.items()
        if not (key == "description" and isinstance(value, str)) and not key.startswith("x-")
    }


def references(part: object) -> Iterator[str]:
    """The names of the definitions that a part of a schema leads to."""
    if isinstance(part, list):
        for each in part:
            yield from references(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref":
                yield value.removeprefix("#/$defs/")
            else:
                yield from references(value)


def main(arguments: Sequence[str]) -> int:
    """Write the schema that the tests read."""
    (source,) = arguments
    definitions = json.loads(Path(source).read_text(encoding="utf-8"))["$defs"]
    SCHEMA.write_text(json.dumps(excerpt(definitions), separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
