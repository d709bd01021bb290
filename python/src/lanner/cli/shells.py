"""Scripts that complete the command line in bash, zsh and fish, written from its outline.

Where an option's or an argument's values are few, they are offered; elsewhere the shell offers files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from lanner.cli.outline import Argument, Command


def bash(program: Command) -> str:
    """For bash 3.2 or newer, without the package bash-completion."""
    cases = [*_bash_words(program, "")]
    for command in program.commands:
        cases += _bash_words(command, command.name)
    valued = [name for each in program.options if each.value for name in each.names]
    return _BASH.format(
        name=program.name,
        commands=" ".join(command.name for command in program.commands),
        valued="|".join(valued),
        cases="\n".join(f"        {line}" for line in cases),
    )


def zsh(program: Command) -> str:
    """For zsh with its completion system (``compinit``)."""
    named = [f"{command.name}:{_brief(command.help)}" for command in program.commands]
    common = [each for option in program.options for each in _zsh_option(option)]
    cases: list[str] = []
    for command in program.commands:
        options = [each for option in command.options for each in _zsh_option(option)]
        specifications = [*options, *_zsh_positions(command)]
        cases += [f"        {command.name})", "            _arguments -s \\"]
        cases += [f"                {_zsh_quoted(each)} \\" for each in specifications]
        cases[-1] = cases[-1].removesuffix(" \\")
        cases.append("            ;;")
    return _ZSH.format(
        name=program.name,
        commands="\n".join(f"        {_zsh_quoted(each)}" for each in named),
        options="\n".join(f"        {_zsh_quoted(each)} \\" for each in common),
        cases="\n".join(cases),
    )


def fish(program: Command) -> str:
    """For fish 3 or newer."""
    name = program.name
    known = " ".join(command.name for command in program.commands)
    lines = [f"# Completion of {name} in fish: `{name} completion fish > ~/.config/fish/completions/{name}.fish`."]
    lines += [f"complete -c {name} {_fish_option(option)}" for option in program.options]
    for command in program.commands:
        first = f"-n 'not __fish_seen_subcommand_from {known}' -f -a {command.name}"
        lines.append(f"complete -c {name} {first} -d {_fish_quoted(_brief(command.help))}")
    for command in program.commands:
        within = f"complete -c {name} -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{within} {_fish_option(option)}" for option in command.options if option not in program.options]
        for position in command.positions:
            if position.choices:
                lines.append(f"{within} -f -a {_fish_quoted(' '.join(position.choices))}")
    return "\n".join(lines) + "\n"


#: By the names of the shells.
SHELLS: Mapping[str, Callable[[Command], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _bash_words(command: Command, name: str) -> Iterator[str]:
    """Lines of a ``case`` over ``COMMAND PREVIOUS``: what may come after an option, then what may come elsewhere."""
    for option in command.options:
        if option.value:
            pattern = "|".join(f"'{name} {each}'" for each in option.names)
            yield f"{pattern}) words={_bash_quoted(option.choices)} ;;"
    names = [each for option in command.options for each in option.names]
    given = [choice for position in command.positions for choice in position.choices]
    given += [each.name for each in command.commands]
    yield f"'{name} '*) words={_bash_quoted(given)} options={_bash_quoted(names)} ;;"


def _bash_quoted(words: list[str] | tuple[str, ...]) -> str:
    return "'" + " ".join(words) + "'"


def _zsh_option(option: Argument) -> Iterator[str]:
    """An option as ``_arguments`` takes it, once for each of its names."""
    told = f"[{_zsh_escaped(_brief(option.help))}]"
    value = f":{_zsh_escaped(option.value)}:{_zsh_values(option)}" if option.value else ""
    for name in option.names:
        mark = "" if not value else "=" if name.startswith("--") else "+"
        yield f"{name}{mark}{told}{value}"


def _zsh_positions(command: Command) -> Iterator[str]:
    for index, position in enumerate(command.positions, start=1):
        place = "*" if position.repeated else str(index)
        yield f"{place}:{_zsh_escaped(position.value)}:{_zsh_values(position)}"


def _zsh_values(argument: Argument) -> str:
    return f"({' '.join(argument.choices)})" if argument.choices else "_files"


def _zsh_escaped(text: str) -> str:
    """Text inside a specification, whose colons and brackets mean something."""
    return "".join(f"\\{letter}" if letter in "\\[]:$`" else letter for letter in text)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _brief(text: str) -> str:
    """A help's first clause, without defaults and exceptions."""
    return re.split(r";| \(", text)[0]


def _fish_option(option: Argument) -> str:
    """An option as ``complete`` of fish takes it."""
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = [] if not option.value else ["-r"]
    if option.choices:
        value = ["-x", "-a", _fish_quoted(" ".join(option.choices))]
    return " ".join([*names, *value, "-d", _fish_quoted(_brief(option.help))])


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_BASH = """\
# Completion of {name} in bash: `source <({name} completion bash)` in ~/.bashrc.
_{name}() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="" command="" words="" options="" index
    # Bash makes words of its own of an equals sign.
    local before=$((COMP_CWORD - 1))
    if [[ $current == "=" ]]; then
        current=""
    elif [[ ${{COMP_WORDS[before]}} == "=" ]]; then
        before=$((before - 1))
    fi
    previous="${{COMP_WORDS[before]}}"
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "${{COMP_WORDS[index]}}" in
        {valued}) ((index++)) ;;
        -*) ;;
        *)
            command="${{COMP_WORDS[index]}}"
            break
            ;;
        esac
    done
    COMPREPLY=()
    [[ -z $command || " {commands} " == *" $command "* ]] || return
    case "$command $previous" in
{cases}
    esac
    if [[ $current == -* ]]; then
        words=$options
    fi
    # No word has a space or a pattern in it.
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{name} {name}
"""

_ZSH = """\
#compdef {name}
# Completion of {name} in zsh: `{name} completion zsh > DIR/_{name}`, where DIR is in $fpath.
_{name}() {{
    local context state line
    local -a commands
    commands=(
{commands}
    )
    _arguments -C -s \\
{options}
        '1: :->command' \\
        '*:: :->arguments'
    case $state in
    command) _describe -t commands command commands ;;
    arguments)
        case $words[1] in
{cases}
        esac
        ;;
    esac
}}
if [[ ${{funcstack[1]}} == _{name} ]]; then
    _{name} "$@"
else
    compdef _{name} {name}
fi
"""
