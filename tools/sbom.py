"""Writes a bill of materials, CycloneDX 1.6 in JSON: every package that a lock file of the project names.

    python tools/sbom.py [FILE]

Rust's packages, their licences and who needs whom come from ``cargo metadata`` (nothing is built), their hashes from
Cargo.lock; Python's come from the lock files in python/. The same lock files give the same bytes. A component's scope
is ``required`` where the installed package needs it, ``optional`` where an extra does, and ``excluded`` where building,
testing or documentation does. What an extra asks for and no test needs is locked nowhere, and is not in it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import locked

ROOT = Path(__file__).resolve().parent.parent

#: The crate that goes into the wheel.
NATIVE = "lanner-py"

#: Python's lock files by what they are for, the first for everything but documentation.
LOCKS = ("requirements.lock", "requirements-docs.lock", "requirements-wheels.lock", "requirements-audit.lock")

#: Serial numbers are made of contents, in this name space.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:lanner:sbom")


@dataclass(slots=True)
class Component:
    """A locked package.

    Attributes:
        kind: ``cargo`` or ``pypi``.
        name: As its registry has it.
        version: Exactly one.
        scope: ``required``, ``optional`` or ``excluded``.
        licence: An SPDX expression; empty where the lock files do not tell.
        hashes: SHA-256 of its files, one of which is installed.
        needs: References of the packages that it requires.
    """

    kind: str
    name: str
    version: str
    scope: str = "excluded"
    licence: str = ""
    hashes: tuple[str, ...] = ()
    needs: set[str] = field(default_factory=set)

    @property
    def reference(self) -> str:
        """The package's URL, by which others refer to it."""
        return f"pkg:{self.kind}/{self.name}@{self.version}"

    def document(self) -> dict[str, Any]:
        """The component as CycloneDX has it."""
        found: dict[str, Any] = {
            "type": "library",
            "bom-ref": self.reference,
            "name": self.name,
            "version": self.version,
            "purl": self.reference,
            "scope": self.scope,
        }
        if self.licence:
            found["licenses"] = [{"expression": self.licence}]
        if len(self.hashes) == 1:
            found["hashes"] = [{"alg": "SHA-256", "content": self.hashes[0]}]
        elif self.hashes:
            # A Python package has a file for each platform: they are hashes of its distributions.
            page = f"https://pypi.org/project/{self.name}/{self.version}/"
            listed = [{"alg": "SHA-256", "content": digest} for digest in self.hashes]
            found["externalReferences"] = [{"type": "distribution", "url": page, "hashes": listed}]
        return found


def main() -> int:
    """Write the bill to the file, or print it."""
    metadata = cargo_metadata(ROOT)
    text = json.dumps(bill(ROOT, metadata), indent=1, ensure_ascii=False) + "\n"
    if len(sys.argv) > 1:
        target = Path(sys.argv[1])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def cargo_metadata(root: Path) -> dict[str, Any]:
    """What cargo tells of the locked crates."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "metadata", "--locked", "--format-version", "1", "--manifest-path", str(root / "Cargo.toml")]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def bill(root: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The whole document."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    components = sorted([*crates(root, metadata), *packages(root)], key=lambda each: each.reference)
    itself = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{project['name']}@{version}",
        "name": project["name"],
        "version": version,
        "description": project["description"],
        "licenses": [{"expression": project["license"]}],
        "purl": f"pkg:pypi/{project['name']}@{version}",
    }
    direct = {each.reference for each in components if each.name == NATIVE}
    wanted = locked.requirements(root, [])
    direct |= {each.reference for each in components if each.kind == "pypi" and each.name in wanted}
    body = {
        "metadata": {"component": itself, "tools": {"components": [{"type": "application", "name": "tools/sbom.py"}]}},
        "components": [each.document() for each in components],
        "dependencies": [
            {"ref": itself["bom-ref"], "dependsOn": sorted(direct)},
            *({"ref": each.reference, "dependsOn": sorted(each.needs)} for each in components),
        ],
    }
    serial = uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


def crates(root: Path, metadata: Mapping[str, Any]) -> list[Component]:
    """The locked crates, those of the workspace among them."""
    lock = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    sums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}
    found = {
        package["id"]: Component(
            "cargo", package["name"], package["version"], licence=spdx(package.get("license") or "")
        )
        for package in metadata["packages"]
    }
    for component in found.values():
        digest = sums[(component.name, component.version)]
        component.hashes = (digest,) if digest else ()
    nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    for name, deps in nodes.items():
        found[name].needs = {found[dep["pkg"]].reference for dep in deps if _is_normal(dep)}
    waiting = [name for name, component in found.items() if component.name == NATIVE]
    while waiting:
        name = waiting.pop()
        if found[name].scope != "required":
            found[name].scope = "required"
            waiting += [dep["pkg"] for dep in nodes[name] if _is_normal(dep)]
    return list(found.values())


def _is_normal(dependency: Mapping[str, Any]) -> bool:
    """Whether a crate needs another to run, and not to be built or tested."""
    return any(kind["kind"] is None for kind in dependency["dep_kinds"])


def spdx(licence: str) -> str:
    """A crate's licence as an SPDX expression: some still have a slash for *or*."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def packages(root: Path) -> list[Component]:
    """The Python packages of the lock files; one that several of them name at a version is one."""
    found: dict[str, Component] = {}
    for lock in LOCKS:
        entries = locked.entries(root, lock)
        for entry in entries:
            component = Component("pypi", entry.name, entry.version, hashes=tuple(sorted(entry.hashes)))
            found.setdefault(component.reference, component)
        for entry in entries:
            for owner in entries:
                if owner.name in entry.required_by:
                    found[_reference(owner)].needs.add(_reference(entry))
    main_lock = locked.entries(root)
    known = {entry.name for entry in main_lock}
    for scope, extras in (("optional", locked.all_extras(root)), ("required", [])):
        # What no test needs is in no lock file.
        wanted = known.intersection(locked.requirements(root, extras))
        for entry in locked.needed(main_lock, wanted):
            found[_reference(entry)].scope = scope
    return list(found.values())


def _reference(entry: locked.Entry) -> str:
    return Component("pypi", entry.name, entry.version).reference


if __name__ == "__main__":
    sys.exit(main())
