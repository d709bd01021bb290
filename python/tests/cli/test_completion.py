"""Completion in shells: what the scripts offer, and that they leave nothing out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lanner.cli import main
from lanner.cli.outline import Command, outline
from lanner.cli.parser import COMMANDS, build_parser
from lanner.cli.shells import SHELLS
from lanner.options import MODES

#: What an interactive bash does for `complete -F`: the words so far, which bash breaks at equals signs, too.
ASKED = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_lanner
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def program() -> Command:
    """The whole command line."""
    return outline(build_parser(), "lanner")


@pytest.fixture(scope="module")
def script(program: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash."""
    path = tmp_path_factory.mktemp("bash") / "lanner.bash"
    path.write_text(SHELLS["bash"](program), encoding="utf-8")
    return path


def offered(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words that are typed."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    command = [bash, "--norc", "-u", "-c", ASKED, "bash", str(script), "lanner", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands(script: Path) -> None:
    assert offered(script, "") == [module.NAME for module in COMMANDS]
    assert offered(script, "com") == ["compile", "completion"]
    assert offered(script, "--json", "pred") == ["predict"]
    # A directory that is named as a command is.
    assert offered(script, "--state-dir", "compile", "pred") == ["predict"]


def test_bash_completes_options_of_each_command(script: Path, program: Command) -> None:
    for command in program.commands:
        names = [name for option in command.options for name in option.names]
        assert offered(script, command.name, "-") == names
    assert offered(script, "predict", "host:1", "x.npy", "--pin") == ["--pin", "--pin-model"]
    assert offered(script, "--st") == ["--state-dir"]


def test_bash_completes_choices(script: Path) -> None:
    assert offered(script, "compile", "--mode", "") == [*MODES]
    assert offered(script, "compile", "--mode", "ch") == ["cheetah"]
    assert offered(script, "compile", "--mode", "=") == [*MODES]
    assert offered(script, "compile", "--mode", "=", "ga") == ["gazelle"]
    assert offered(script, "completion", "") == [*SHELLS]
    assert offered(script, "bench", "lay") == ["layers"]


def test_bash_leaves_other_values_and_unknown_commands_to_files(script: Path) -> None:
    assert offered(script, "compile", "--calibration", "") == []
    assert offered(script, "compile", "net") == []
    assert offered(script, "dream", "--") == []
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "complete -o default -F _lanner lanner"


@pytest.mark.parametrize("shell", SHELLS)
def test_script_names_every_command_option_and_choice(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    program = outline(build_parser(), "lanner")
    assert {command.name for command in program.commands} == {module.NAME for module in COMMANDS}
    for command in program.commands:
        part = part_of(printed, shell, command.name)
        for option in command.options:
            for name in option.names:
                dashed = name if shell != "fish" else f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                assert re.search(rf"(?<![\w-]){re.escape(dashed)}(?![\w-])", part), (command.name, name)
            assert all(choice in part for choice in option.choices)


def part_of(script: str, shell: str, command: str) -> str:
    """The lines of a script that are about a command."""
    if shell == "zsh":
        return script.split(f"\n        {command})\n")[1].split("\n            ;;")[0]
    mark = {"bash": f"'{command} ", "fish": f"'__fish_seen_subcommand_from {command}'"}[shell]
    common = [line for line in script.splitlines() if shell == "fish" and " -n " not in line]
    return "\n".join([*common, *(line for line in script.splitlines() if mark in line)])


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_takes_the_script(shell: str, program: Command, tmp_path: Path) -> None:
    there = shutil.which(shell)
    if there is None:
        pytest.skip(f"there is no {shell} to ask")
    path = tmp_path / "script"
    path.write_text(SHELLS[shell](program), encoding="utf-8")
    subprocess.run([there, "-n", str(path)], check=True, timeout=20)


def test_script_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    script = capsys.readouterr().out
    assert main(["completion", "fish", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "fish", "script": script}


def test_other_shells_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "bash" in capsys.readouterr().err
