"""The built wheel in a clean environment: no compiler, no onnx, nothing but what the wheel asks for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from helpers.models import tiny_samples
from helpers.processes import HUNG
from lanner.extras import OPTIONAL

ROOT = Path(__file__).parents[3]

#: What nobody needs who only predicts, without a gateway.
NOT_THERE = (
    "onnx",
    "onnxruntime",
    "sklearn",
    "skl2onnx",
    "scipy",
    "matplotlib",
    "torch",
    "fastapi",
    "uvicorn",
    "opentelemetry",
)


@dataclass(frozen=True, slots=True)
class Installed:
    """The wheel in an environment of its own.

    Attributes:
        folder: The environment; its ``bin`` is all that programs are looked for in.
    """

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes: no compiler, no other Python's packages, and a state of their own."""
        refused = "/bin/false"
        return {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder),
            "LANNER_HOME": str(self.folder / "state"),
            "CC": refused,
            "CXX": refused,
            "RUSTC": refused,
            "CARGO": refused,
        }

    def command(self, *arguments: object) -> list[str]:
        """A command of the ``lanner`` that the wheel installed."""
        return [str(self.folder / "bin" / "lanner"), *map(str, arguments)]

    def lanner(self, *arguments: object) -> tuple[int, dict[str, Any], str]:
        """Run ``lanner ... --json``; returns exit code, document and standard error."""
        return self.finished(self.command(*arguments, "--json"))

    def finished(self, command: list[str]) -> tuple[int, dict[str, Any], str]:
        """Run a command that prints one document."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=HUNG, check=False, cwd=self.folder
        )
        assert len(done.stdout.splitlines()) == 1, (done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was built and is for this machine; else one of what `make setup` compiled, which is packed only."""
    here = frozenset(sys_tags())
    built = [path for path in (ROOT / "dist").glob("lanner-*.whl") if here & parse_wheel_filename(path.name)[3]]
    if not built:
        folder = tmp_path_factory.mktemp("wheel")
        maturin = [str(Path(sys.executable).with_name("maturin")), "build", "--locked", "--quiet", "--out", str(folder)]
        maturin += ["--interpreter", sys.executable, "--compression-level", "1"]
        subprocess.run(maturin, cwd=ROOT, check=True, timeout=10 * HUNG)
        built = list(folder.glob("lanner-*.whl"))
    return built[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed by pip beside copies of exactly the packages that it requires."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=HUNG)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in required(metadata(wheel).get_all("Requires-Dist", [])):
        copy_distribution(name, packages)
    here = Installed(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--isolated", "install"]
    # pip looks nowhere but at the wheel and what lies there: it fails if the wheel requires more.
    pip += ["--no-index", "--only-binary", ":all:", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run(pip, env=here.environment, capture_output=True, text=True, timeout=HUNG, check=False)
    assert done.returncode == 0, done.stderr
    return here


def metadata(wheel: Path) -> Any:  # noqa: ANN401 - an email message, whose type is too wide to help
    """The headers of a wheel's METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def required(requirements: list[str]) -> set[str]:
    """The distributions that requirements name, and those that they require in turn; extras are left out."""
    found: set[str] = set()
    waiting = [*requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.match(r"[\w.-]+", requirement)
        if name is None or "extra ==" in requirement or name[0] in found:
            continue
        found.add(name[0])
        waiting += distribution(name[0]).requires or []
    return found


def copy_distribution(name: str, target: Path) -> None:
    """Copy an installed distribution's files, but for its programs."""
    for file in distribution(name).files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:
            place = target / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), place)


def test_one_wheel_serves_every_later_python(wheel: Path) -> None:
    assert re.fullmatch(r"lanner-[\d.]+-cp311-abi3-\w+\.whl", wheel.name), wheel.name


def test_wheel_has_the_extras_of_the_project(wheel: Path) -> None:
    assert {"onnx", "train", "demo", "plots", "plot", "gateway"} <= set(metadata(wheel).get_all("Provides-Extra"))


def test_wheel_holds_the_package_and_not_what_writes_pages_of_figures(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"lanner"}
    kept = {Path(name).stem for name in names if name.startswith("lanner/benchmarks/")}
    of_bench = {path.stem for path in (ROOT / "bench").glob("*.py")} - {"__init__", "cases"}
    assert not kept & of_bench
    assert {"cases", "kernel_times", "measure"} <= kept


def test_clean_environment_has_nothing_of_onnx(installed: Installed) -> None:
    program = "import importlib.util, json; print(json.dumps({n: importlib.util.find_spec(n) is None for n in %r}))"
    code, absent, _ = installed.finished([str(installed.folder / "bin" / "python"), "-c", program % (NOT_THERE,)])
    assert code == 0
    assert all(absent[name] for name in NOT_THERE), absent
    code, document, _ = installed.lanner("doctor")
    assert code == 0
    assert {lack["package"] for lack in document["missing"]} == set(OPTIONAL)


@pytest.mark.slow
def test_client_and_server_work_without_extras(installed: Installed, tiny_label: Path, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    np.save(x, tiny_samples(2, seed=5))
    public, keys = tmp_path / "tiny.public", tmp_path / "tiny.keys"
    for command in (
        ("--version",),
        ("inspect", tiny_label),
        ("export", tiny_label, "-o", public),
        ("estimate", public),
        ("keygen", public, "-o", keys),
        ("run", tiny_label, x),
        ("debug", tiny_label, x),
        ("pairings",),
    ):
        code, document, errors = installed.lanner(*command)
        assert (code, "error" in document) == (0, False), errors
    serve = installed.command("serve", tiny_label, "--listen", "127.0.0.1:0", "--json")
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=installed.environment) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            trust = ("--pin", ready["fingerprint"], "--state-dir", tmp_path / "client")
            code, document, errors = installed.lanner("prepare", ready["address"], "--count", "1", *trust)
            assert code == 0, errors
            code, document, errors = installed.lanner("predict", ready["address"], x, *trust)
            assert code == 0, errors
            assert {each["class_name"] for each in document["predictions"]} <= {"ant", "bee", "cat", "dog"}
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("compile", "tiny.onnx", "-o", "tiny.lanner", "--calibration", "x.npy"), "onnx"),
        (("inspect", "tiny.onnx"), "onnx"),
        (("estimate", "tiny.onnx", "--calibration", "x.npy"), "onnx"),
        (("run", "tiny.onnx", "x.npy", "--calibration", "x.npy"), "onnx"),
        (("debug", "tiny.onnx", "x.npy", "--calibration", "x.npy"), "onnx"),
        (("bench", "layers"), "onnx"),
        (("demo",), "demo"),
        (("doctor", "--calibrate"), "onnx"),
        (("inspect", "tiny.lanner", "--html", "page.html"), "plots"),
        (("gateway", "127.0.0.1:1", "--insecure-plaintext"), "gateway"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_needs_more_says_which_extra_in_a_sentence(
    installed: Installed, tiny_onnx: Path, tiny_label: Path, tmp_path: Path, command: tuple[str, ...], extra: str
) -> None:
    np.save(tmp_path / "x.npy", tiny_samples(2, seed=5))
    there = {"tiny.onnx": tiny_onnx, "x.npy": tmp_path / "x.npy"}
    if command[0] == "inspect" and extra == "plots":
        there["tiny.lanner"] = tiny_label
    code, document, errors = installed.lanner(*(there.get(word, word) for word in command))
    assert code == 2, errors
    assert len(errors.splitlines()) == 1
    named = re.fullmatch(r"run pip install [a-z -]+, which is what lanner\[([a-z,]+)\] adds", document["error"]["fix"])
    assert named is not None, document
    assert extra in named[1].split(",")
