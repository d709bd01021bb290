"""What a scraper reads of a server or a gateway."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from helpers.processes import HUNG


@dataclass(frozen=True, slots=True)
class Scraped:
    """All samples of one scrape."""

    samples: list[Sample]

    @classmethod
    def of_text(cls, text: str) -> Scraped:
        """Read the text format."""
        return cls([sample for family in text_string_to_metric_families(text) for sample in family.samples])

    @classmethod
    def of_server(cls, address: str) -> Scraped:
        """Ask a server's endpoint."""
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=HUNG) as response:
            return cls.of_text(response.read().decode())

    @property
    def names(self) -> set[str]:
        """The names of the samples."""
        return {sample.name for sample in self.samples}

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples of a name that have these labels, of which there is at least one."""
        found = [each for each in self.samples if each.name == name and labels.items() <= each.labels.items()]
        assert found, (name, labels)
        return float(sum(sample.value for sample in found))
