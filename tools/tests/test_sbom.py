"""The bill of materials names every locked package, is well formed, and follows from the lock files alone."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sbom

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "cyclonedx.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    return sbom.cargo_metadata(ROOT)


@pytest.fixture(scope="module")
def bill(metadata: dict[str, Any]) -> dict[str, Any]:
    return sbom.bill(ROOT, metadata)


def component(bill: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(each) for each in bill["components"] if each["purl"].split("@")[0] == name)


def test_every_locked_crate_is_named(bill: dict[str, Any]) -> None:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    wanted = {f"pkg:cargo/{entry['name']}@{entry['version']}" for entry in lock}
    assert {each["purl"] for each in bill["components"] if each["purl"].startswith("pkg:cargo/")} == wanted


def test_every_locked_python_package_is_named(bill: dict[str, Any]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "python").glob("*.lock"))
    wanted = {f"pkg:pypi/{name}@{version}" for name, version in re.findall(r"^(\S+)==([^\s;]+)", text, re.MULTILINE)}
    assert {each["purl"] for each in bill["components"] if each["purl"].startswith("pkg:pypi/")} == wanted


def test_bill_is_well_formed(bill: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(bill, SCHEMA)
    references = [each["bom-ref"] for each in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
    assert len(set(references)) == len(references)
    assert sorted(each["ref"] for each in bill["dependencies"]) == sorted(references)
    assert {needed for each in bill["dependencies"] for needed in each["dependsOn"]} <= set(references)


def test_schema_refuses_a_hash_that_is_none(bill: dict[str, Any]) -> None:
    broken = copy.deepcopy(bill)
    next(each for each in broken["components"] if "hashes" in each)["hashes"][0]["content"] = "abc"
    with pytest.raises(jsonschema.ValidationError, match="abc"):
        jsonschema.validate(broken, SCHEMA)


def test_what_comes_from_a_registry_has_a_hash(bill: dict[str, Any]) -> None:
    for each in bill["components"]:
        assert "hashes" in each or "externalReferences" in each or each["name"].startswith(("lanner", "attacks")), each


def test_every_crate_has_a_licence(bill: dict[str, Any]) -> None:
    assert [each["name"] for each in bill["components"] if "cargo/" in each["purl"] and "licenses" not in each] == []
    assert sbom.spdx("MIT/Apache-2.0") == "MIT OR Apache-2.0"


def test_scopes_tell_what_an_installation_needs(bill: dict[str, Any]) -> None:
    for scope, names in (
        ("required", ("pypi/numpy", "pypi/rich", "pypi/pygments", "cargo/lanner-py", "cargo/rustls", "cargo/ring")),
        ("optional", ("pypi/onnx", "pypi/protobuf", "pypi/scikit-learn", "pypi/skl2onnx")),
        ("excluded", ("pypi/pytest", "pypi/maturin", "pypi/mkdocs", "cargo/proptest", "cargo/lanner-testkit")),
    ):
        for name in names:
            assert component(bill, f"pkg:{name}")["scope"] == scope, name


def test_dependencies_are_told(bill: dict[str, Any]) -> None:
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    rich = component(bill, "pkg:pypi/rich")["bom-ref"]
    assert [needed.split("@")[0] for needed in needs[rich]] == ["pkg:pypi/markdown-it-py", "pkg:pypi/pygments"]
    itself = needs[bill["metadata"]["component"]["bom-ref"]]
    assert {needed.split("@")[0] for needed in itself} == {
        "pkg:cargo/lanner-py",
        "pkg:pypi/numpy",
        "pkg:pypi/pillow",
        "pkg:pypi/prometheus-client",
        "pkg:pypi/rich",
    }


def test_same_lock_files_give_the_same_bytes(bill: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert json.dumps(sbom.bill(ROOT, metadata)) == json.dumps(bill)
    text = json.dumps(bill)
    assert str(ROOT) not in text
    assert "timestamp" not in text
