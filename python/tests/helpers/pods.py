"""What a pod of deploy/kubernetes runs, with its volumes in a folder of the test's own and its ports on free ones."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from helpers.callers import Caller
from helpers.documents import ROOT, free_address
from helpers.processes import HUNG

MANIFESTS = ROOT / "deploy" / "kubernetes"

#: Where the image has the health check.
HEALTH = "/opt/lanner/health.py"

#: What stands for a pod's own address in the header that a kubelet sends.
POD = "192.0.2.7"


@dataclass(frozen=True)
class Pod:
    """The pod of a StatefulSet or a Deployment.

    Attributes:
        spec: What the manifest says of it.
        folder: Where its volumes are.
        ports: The free port for each that its container has.
    """

    spec: Mapping[str, Any]
    folder: Path
    ports: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: str, kind: str, folder: Path) -> Pod:
        """The one of a kind in a manifest; its volumes are made, empty."""
        (document,) = (each for each in read_manifest(manifest) if each["kind"] == kind)
        pod = cls(document["spec"]["template"]["spec"], folder)
        inside = [port["containerPort"] for port in pod.container["ports"]]
        # What nobody outside of the pod reaches is no port of the container.
        inside += [int(port) for word in pod.container["args"] for port in re.findall(r"^127\.0\.0\.1:(\d+)$", word)]
        for port in inside:
            pod.ports[port] = int(free_address().rsplit(":", 1)[1])
        for container in (pod.container, *pod.spec.get("initContainers", ())):
            for mount in container["volumeMounts"]:
                (folder / mount["name"]).mkdir(parents=True, exist_ok=True)
        return pod

    @property
    def container(self) -> dict[str, Any]:
        """Its container."""
        (found,) = self.spec["containers"]
        return dict(found)

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``lanner``, behind the command's name."""
        return self.translated(self.container["args"][1:])

    def give(self, path: str, content: bytes, mode: int = 0o440) -> None:
        """Lay a file into a volume, by the path that it has in the container."""
        target = Path(self.translated([path])[0])
        target.write_bytes(content)
        target.chmod(mode)

    def translated(self, words: list[str], container: Mapping[str, Any] | None = None) -> list[str]:
        """Words of a container as they are here: its paths, its ports, and programs of the image."""
        mounts = (self.container if container is None else container)["volumeMounts"]
        volumes = {mount["mountPath"]: str(self.folder / mount["name"]) for mount in mounts}
        mounted = "|".join(map(re.escape, volumes))
        place = re.compile(rf"(^|=)({mounted})(?=/|$)")
        words = [place.sub(lambda found: found[1] + volumes[found[2]], word) for word in words]
        for inside, outside in self.ports.items():
            words = [re.sub(rf":{inside}(?=/|$)", f":{outside}", word) for word in words]
        programs = {"python": sys.executable, HEALTH: str(ROOT / "deploy" / "health.py")}
        return [programs.get(word, word) for word in words]

    def initialise(self) -> None:
        """Run what runs before the container, which must have no image of its own."""
        for container in self.spec["initContainers"]:
            assert container["image"] == self.container["image"]
            subprocess.run(self.translated(container["command"], container), check=True, timeout=HUNG)

    def succeeds(self, name: str, authority: Path | None = None) -> bool:
        """Whether a probe succeeds, asked once as a kubelet asks it."""
        probe = self.container[f"{name}Probe"]
        if "exec" in probe:
            command = self.translated(probe["exec"]["command"])
            return subprocess.run(command, capture_output=True, timeout=HUNG, check=False).returncode == 0
        asked = probe["httpGet"]
        (inside,) = (each["containerPort"] for each in self.container["ports"] if each["name"] == asked["port"])
        address = f"127.0.0.1:{self.ports[inside]}"
        call = Caller(f"{asked.get('scheme', 'HTTP').lower()}://{address}", authority)
        try:
            return 200 <= call.get(asked["path"], Host=f"{POD}:{inside}").status < 400
        except OSError:
            return False

    @property
    def grace(self) -> int:
        """Seconds from SIGTERM to SIGKILL: those to leave are over then."""
        leave = self.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        return int(self.spec["terminationGracePeriodSeconds"] - leave)


def read_manifest(name: str) -> list[dict[str, Any]]:
    """The documents of a manifest."""
    return [each for each in yaml.safe_load_all((MANIFESTS / name).read_text(encoding="utf-8")) if each]
