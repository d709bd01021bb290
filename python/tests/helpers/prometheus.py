"""A Prometheus that scrapes real servers and gateways."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from helpers.documents import ROOT, free_address
from helpers.processes import HUNG


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs.

    Attributes:
        address: Where it answers.
    """

    address: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives at this moment; it must be one."""
        result: list[dict[str, Any]] = self._ask("query", {"query": expression})["result"]
        return result

    def series(self, selector: str) -> list[dict[str, str]]:
        """The labels of the series that a selector chooses."""
        found: list[dict[str, str]] = self._ask("series", {"match[]": selector})
        return found

    def alerts(self) -> dict[str, str]:
        """Of each rule that alerts, how its evaluation went, once all have been evaluated."""
        deadline = time.monotonic() + HUNG
        while True:
            groups = self._ask("rules", {})["groups"]
            health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
            if "unknown" not in health.values():
                return health
            assert time.monotonic() < deadline, health
            time.sleep(0.2)

    def _ask(self, what: str, given: Mapping[str, str]) -> Any:  # noqa: ANN401 - a JSON document
        url = f"http://{self.address}/api/v1/{what}?{urllib.parse.urlencode(given)}"
        try:
            with urllib.request.urlopen(url, timeout=HUNG) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError((given, error.read().decode())) from None


@contextmanager
def prometheus(program: str, folder: Path, targets: Sequence[str], labels: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run one with the alerts of deploy/, which scrapes these as pods with these labels, every second."""
    folder.mkdir()
    address, settings = free_address(), folder / "prometheus.yml"
    document = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / "deploy" / "alerts.yml")],
        "scrape_configs": [
            {"job_name": "lanner", "static_configs": [{"targets": list(targets), "labels": dict(labels)}]}
        ],
    }
    settings.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [program, f"--config.file={settings}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address={address}", "--log.level=error"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            _await_ready(address, process)
            yield Prometheus(address)
        finally:
            process.terminate()
            process.wait(HUNG)


def _await_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + HUNG
    while True:
        assert process.poll() is None, "it ended"
        try:
            urllib.request.urlopen(f"http://{address}/-/ready", timeout=HUNG).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return
