"""The trials by name, in the order in which they run."""

from __future__ import annotations

from types import ModuleType

from endurance import clients, clock, disk, fuzz, kill, links, private_keys, sanitizers, silent, soak, timing

TRIALS: dict[str, ModuleType] = {
    "clients": clients,
    "soak": soak,
    "kill": kill,
    "links": links,
    "disk": disk,
    "clock": clock,
    "silent": silent,
    "private_keys": private_keys,
    "fuzz": fuzz,
    "sanitizers": sanitizers,
    "timing": timing,
}
