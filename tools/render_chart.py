"""Renders the Helm chart of deploy/helm/lanner into the manifests of deploy/kubernetes, by Helm itself.

    python tools/render_chart.py

Helm is the `helm` on the path; where there is none, Go builds the one that is named below, which takes some minutes the
first time. The first line of each manifest says what the chart was when it was rendered, so that a change of the one
without the other is noticed without Helm, too.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
CHART = DEPLOY / "helm" / "lanner"
MANIFESTS = DEPLOY / "kubernetes"

#: What is built where there is no Helm.
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"

#: The oldest version of Kubernetes that the chart takes.
KUBERNETES = "1.30.0"

#: The commitment that stands for that of a model of one's own: no model has it.
COMMITMENT = "0" * 64

#: What a release of servers must be told: its model, and where its object store is.
SERVED = (
    "server.models[0].name=digits",
    "server.models[0].file=digits.lanner",
    f"server.models[0].commitment={COMMITMENT}",
    "networkPolicy.store.to[0].ipBlock.cidr=192.0.2.10/32",
)

#: The release that each manifest is, and the settings that it has.
RELEASES: Mapping[str, tuple[str, Sequence[str]]] = {
    "servers.yaml": ("lanner-wire6", SERVED),
    "gateways.yaml": ("lanner", ("server.enabled=false", "gateway.enabled=true")),
}


class NoHelmError(Exception):
    """Neither Helm nor Go is there."""


def helm() -> list[str]:
    """The command that is Helm.

    Raises:
        NoHelmError: If there is none, nor a way to build it.
    """
    if found := shutil.which("helm"):
        return [found]
    if found := shutil.which("go"):
        return [found, "run", HELM]
    raise NoHelmError("there is neither helm nor go; install Helm 3.14 or newer")


def template(release: str, settings: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Render the chart; what Helm says is kept."""
    command = [*helm(), "template", release, str(CHART), "--kube-version", KUBERNETES]
    command += [word for setting in settings for word in ("--set", setting)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def chart_digest() -> str:
    """The hash of the chart's files and their names."""
    digest = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(CHART).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def manifest(name: str) -> str:
    """What a manifest must hold.

    Raises:
        NoHelmError: If there is no Helm.
        ValueError: If the chart cannot be rendered.
    """
    rendered = template(*RELEASES[name])
    if rendered.returncode != 0:
        raise ValueError(rendered.stderr.strip())
    return f"# tools/render_chart.py made this of the chart with hash {chart_digest()}.\n{rendered.stdout}"


def main() -> int:
    """Write every manifest, or say why not."""
    try:
        for name in RELEASES:
            (MANIFESTS / name).write_text(manifest(name), encoding="utf-8")
    except (NoHelmError, ValueError) as error:
        print(f"render_chart: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
