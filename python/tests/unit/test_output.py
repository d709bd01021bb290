"""What is printed of names that a server chose."""

from __future__ import annotations

import pytest

from lanner.cli.output import Output, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a cat, 12 %", "a cat, 12 %"),
        ("Schnürsenkel 猫", "Schnürsenkel 猫"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("[red]no markup[/red]", "\\[red]no markup\\[/red]"),
        ("\x1b]0;title\x07\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J"),
        ("carriage\rreturn\x9b2J", "carriage\\rreturn\\x9b2J"),
        # Letters that would be read from right to left.
        ("\u202egnissim", "\\u202egnissim"),
    ],
)
def test_text_is_printed_without_commands(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_no_name_in_a_table_reaches_the_terminal_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    output.table(("class",), [("\x1b[2Jcat",)])
    output.say("label \x1b[2Jcat")
    printed = capsys.readouterr().err
    assert printed.count("\\x1b[2Jcat") == 2
    assert "\x1b" not in printed
