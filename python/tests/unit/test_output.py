"""What is printed of names that a server chose."""

from __future__ import annotations

import json

import pytest

from lanner.cli.events import Event
from lanner.cli.output import Output, plain
from lanner.cli.prepare import keep
from lanner.errors import MisuseError
from lanner.prediction import PHASES, Phase
from lanner.wording import counted


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
    output.section("\x1b[2Jcat", [("\x1b[2Jcat", "\x1b[2Jcat")])
    printed = capsys.readouterr().out
    assert printed.count("\\x1b[2Jcat") == 5
    assert "\x1b" not in printed


def test_streams(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    output.say("a result")
    output.tell("what goes on")
    output.warn("mind this")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("a result\n", "what goes on\nnote: mind this\n")
    output = Output(json=True)
    output.say("a result")
    output.tell("what goes on")
    output.log(Event("session_ended", "a session"))
    output.document({"a": 1})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ('{"a": 1}\n', "a session\n")


def test_every_line_of_a_structured_log_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    output.structured = True
    output.tell("what goes on", event="stopping")
    output.warn("mind\nthis")
    output.log(Event("session_ended", "a session", "warning", 0.5, {"session": 1, "model": None, "reason": "[\x1b"}))
    output.fail(MisuseError("this is wrong", fix="make it right"))
    printed = capsys.readouterr()
    assert printed.out == ""
    told = [json.loads(line) for line in printed.err.splitlines()]
    assert told[2] == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "warning",
        "event": "session_ended",
        "session": 1,
        "reason": "[\x1b",
    }
    assert [(each["level"], each["event"]) for each in told] == [
        ("info", "stopping"),
        ("warning", "note"),
        ("warning", "session_ended"),
        ("error", "failed"),
    ]
    assert (told[1]["message"], told[3]["reason"]) == ("mind\nthis", "misuse")
    assert "\x1b" not in printed.err


def test_what_carries_nothing_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    output.table(("name", "empty", "blank", "some"), [("a", None, "", None), ("b", None, "", 0)])
    header, first, second, _ = capsys.readouterr().out.split("\n", 3)
    assert (header.split(), first.split(), second.split()) == (["name", "some"], ["a", "-"], ["b", "0"])
    output.table(("name",), [])
    output.section("Title", [("name", None), ("other", "")])
    assert capsys.readouterr().out == ""


def test_sections_are_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).section("Title", [("name", "word " * 40), ("other name", "short")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("  name        word")
    assert lines[2].startswith(" " * 14 + "word")


def test_numbers_of_things() -> None:
    assert [counted(count, "sample") for count in (0, 1, 2)] == ["0 samples", "1 sample", "2 samples"]


def test_no_name_adds_a_line_to_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=False)
    output.table(("class", "n"), [("cat\ndog  2\t3", 1)], title="a\nb")
    output.section("one\ntwo", [("name", "text")])
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines() if line.strip()] == [
        ["a\\nb"],
        ["class", "n"],
        ["cat\\ndog", "2\\t3", "1"],
        ["one\\ntwo"],
        ["name", "text"],
    ]


class Interrupted:
    """A client that is interrupted once it keeps material for two predictions."""

    def __init__(self) -> None:
        self.kept = 0

    def keep(self, count: int) -> dict[str, Phase]:
        """Keep material for so many more."""
        if self.kept == 2:
            raise KeyboardInterrupt
        self.kept += count
        return dict.fromkeys(PHASES, Phase(1.0, 1, 1, 1))


@pytest.mark.parametrize("as_document", [False, True])
def test_what_is_prepared_is_told_where_the_rest_is_interrupted(
    as_document: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output(json=as_document)
    with pytest.raises(KeyboardInterrupt):
        keep(Interrupted(), 2000, output)  # type: ignore[arg-type]
    assert capsys.readouterr().err == "note: 2 of 2000 prepared and in stock, each used once, for a week at most\n"
    assert keep(Interrupted(), 2, output)["offline"].rounds == 2  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
