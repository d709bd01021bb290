"""The trials by name, in the order in which they run."""

from __future__ import annotations

from types import ModuleType

from endurance import clients, clock, disk, kill, links, silent, soak

TRIALS: dict[str, ModuleType] = {
    "clients": clients,
    "soak": soak,
    "kill": kill,
    "links": links,
    "disk": disk,
    "clock": clock,
    "silent": silent,
}
