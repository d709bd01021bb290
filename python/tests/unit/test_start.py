"""The first tenths of a second of a command, in which its modules are loaded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers.processes import HUNG

#: A command that gets Ctrl-C when it loads a certain module.
PROGRAM = """
import signal, sys
from lanner.cli import main

class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

assert sys.argv[1] not in sys.modules
sys.meta_path.insert(0, Interrupt())
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("module", ["lanner._native", "numpy", "rich.console"])
def test_ctrl_c_while_a_command_is_loaded_ends_it_with_a_sentence(module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module, "doctor", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=False)
    assert result.returncode == 130
    assert result.stderr == "error: interrupted\n"
    assert json.loads(result.stdout)["error"]["kind"] == "interrupted"


def test_the_package_loads_what_is_used() -> None:
    program = "import sys, lanner; names = set(sys.modules); lanner.InputError; print('numpy' in names, dir(lanner))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HUNG, check=True)
    assert result.stdout.startswith("False [")
    assert "'compile'" in result.stdout
