"""The gateway's page in a browser: at the width of a desk and of a phone, by mouse, by file, and by keyboard alone."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from bench.chromium import Tab, browsing, chromium
from helpers.digits import MODELS, NAMES, DigitModels, save_picture
from helpers.documents import free_address
from helpers.processes import Serving, gateway, serving
from lanner.datasets import load_digits
from lanner.network import read_network

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium to show the page"),
]

X = load_digits("test")[0]

DESK, PHONE = (1200, 900), (360, 740)

#: That the chosen picture is shown; until then it moves what is below it.
PREVIEWED = "(preview => !preview.hidden && preview.complete)(document.getElementById('preview'))"

#: Strokes of a seven, in parts of the drawing area.
SEVEN = ((0.3, 0.25), (0.5, 0.25), (0.7, 0.25), (0.62, 0.4), (0.52, 0.6), (0.45, 0.8))


@pytest.fixture(scope="module")
def browser() -> Iterator[Tab]:
    """A tab that all tests of this file share."""
    with browsing() as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    """The tab, which must have nothing to complain of, and ask the gateway alone."""
    browser.requests.clear()
    browser.complaints.clear()
    yield browser
    assert browser.complaints == []
    origins = {request.split("/")[2] for request in browser.requests if not request.startswith("blob:")}
    assert len(origins) == 1


def opened(tab: Tab, gate: Serving, size: tuple[int, int], *, dark: bool = False) -> None:
    tab.view(*size, mobile=size == PHONE, dark=dark)
    tab.open(gate.document["url"] + "/")
    tab.wait("!document.getElementById('ask').hidden")


def drawn(tab: Tab, strokes: Sequence[tuple[float, float]]) -> None:
    """Draw with the mouse, in parts of the drawing area."""
    left, top, side = tab.value(
        "(() => { const e = document.getElementById('canvas'); e.scrollIntoView({block: 'center'});"
        "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    tab.drag([(left + x * side, top + y * side) for x, y in strokes])


def answered(tab: Tab) -> str:
    """Wait for the result, check what else is told of it, and return it."""
    tab.wait("!document.getElementById('send').disabled")
    tab.wait("!document.getElementById('result').hidden || document.getElementById('error').innerText")
    assert tab.text("error") == ""
    assert tab.value("document.activeElement.id") == "result"
    rows = tab.text("phases").splitlines()
    assert [row.split()[0] for row in rows] == ["set-up", "offline", "online"]
    assert tab.value("document.querySelectorAll('#timeline li').length") > 3
    assert "784 values" in tab.text("seen")
    assert "these 64 bytes" in tab.text("message-about")
    assert re.fullmatch(r"([0-9a-f]{2} ){64}\u2026", tab.text("message"))
    return tab.text("answer")


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_drawing_is_classified(tab: Tab, gate: Serving, size: tuple[int, int], dark: bool) -> None:
    opened(tab, gate, size, dark=dark)
    drawn(tab, SEVEN)
    tab.click("send")
    assert answered(tab) == "seven"
    assert tab.text("probability").startswith("probability 0.")
    # Nothing has to be scrolled sideways, the table of phases included.
    assert tab.value("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.value("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.wide'))")
    light = tab.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(light) < 300) == dark


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_layers_are_shown_while_they_run(tab: Tab, behind: Serving, tmp_path: Path, size: tuple[int, int]) -> None:
    with (
        read_network("wan").between(behind.address) as address,
        gateway(tmp_path, address, *behind.pin, "--model", "digits") as far,
    ):
        opened(tab, far, size)
        drawn(tab, SEVEN)
        tab.value(
            "window.seen = []; window.look = setInterval(() => { if (!document.getElementById('live').hidden)"
            " window.seen.push([document.getElementById('live-now').innerText,"
            " document.querySelectorAll('#live-steps li').length,"
            " document.querySelectorAll('#live-steps .now').length,"
            " document.documentElement.scrollWidth <= window.innerWidth]); }, 20)"
        )
        tab.click("send")
        tab.wait("document.querySelectorAll('#live-steps .now').length > 0")
        tab.screenshot(tmp_path / "live.png")
        assert answered(tab) == "seven"
        tab.value("clearInterval(window.look)")
        assert tab.value("document.getElementById('live').hidden")
        seen = tab.value("window.seen")
    counts = [count for _, count, _, _ in seen]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert any(now for _, _, now, _ in seen)
    assert all(fits for *_, fits in seen)
    assert len({told for told, *_ in seen if " of " in told}) > 2


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_set_up_of_a_new_session_is_shown(
    tab: Tab, digit_models: DigitModels, tmp_path: Path, size: tuple[int, int]
) -> None:
    served, address = digit_models.files[0], free_address()
    with (
        read_network("wan").between(address) as far,
        serving(tmp_path / "state", served, "--listen", address) as first,
        gateway(tmp_path / "gate", far, *first.pin) as gate,
    ):
        opened(tab, gate, size)
        drawn(tab, SEVEN)
        first.end(signal.SIGTERM)
        with serving(tmp_path / "state", served, "--listen", address):
            tab.value(
                "window.seen = []; window.look = setInterval(() => { if (!document.getElementById('live').hidden)"
                " window.seen.push([document.getElementById('live-now').innerText,"
                " document.querySelectorAll('#live-steps .setup').length,"
                " document.documentElement.scrollWidth <= window.innerWidth]); }, 20)"
            )
            tab.click("send")
            tab.wait("document.querySelectorAll('#live-steps .setup.now').length > 0")
            tab.screenshot(tmp_path / "set-up.png")
            tab.wait("!document.getElementById('send').disabled")
            tab.value("clearInterval(window.look)")
            assert tab.text("error") == ""
            seen = tab.value("window.seen")
    assert any(told.startswith("set-up: part ") and " of 4, " in told for told, *_ in seen)
    counts = [count for _, count, _ in seen]
    assert counts == sorted(counts)
    assert counts[-1] == 4, "the parts stay above the layers"
    assert all(fits for *_, fits in seen)


def test_picture_is_classified(tab: Tab, gate: Serving, digit_models: DigitModels, tmp_path: Path) -> None:
    opened(tab, gate, DESK)
    tab.value("document.querySelector('input[value=file]').click()")
    tab.choose_file("chosen", save_picture(tmp_path / "digit.png", X[0]))
    tab.wait(PREVIEWED)
    tab.click("send")
    assert answered(tab) == NAMES[digit_models.models["digits"].predict_fixed(X[0]).argmax()]


@pytest.mark.parametrize("place", ["canvas", "model-facts"])
def test_file_is_dropped_anywhere(
    tab: Tab, gate: Serving, digit_models: DigitModels, tmp_path: Path, place: str
) -> None:
    opened(tab, gate, DESK)
    pictures = [save_picture(tmp_path / f"{number}.png", X[number]) for number in range(2)]
    tab.drop_files(place, pictures)
    tab.wait("document.getElementById('error').innerText")
    assert tab.text("error") == "One file at a time can be dropped."
    tab.drop_files(place, pictures[:1])
    tab.wait(PREVIEWED)
    assert tab.text("error") == ""
    assert tab.value("document.querySelector('input[value=file]').checked")
    assert tab.value("document.getElementById('chosen').files[0].name") == "0.png"
    tab.click("send")
    assert answered(tab) == NAMES[digit_models.models["digits"].predict_fixed(X[0]).argmax()]
    # What is chosen later takes its place.
    tab.choose_file("chosen", pictures[1])
    tab.click("send")
    tab.wait("document.getElementById('status').innerText.startsWith('Asking')")
    assert answered(tab) == NAMES[digit_models.models["digits"].predict_fixed(X[1]).argmax()]


def test_box_says_that_the_first_line_of_csv_is_a_header(
    tab: Tab, gate: Serving, digit_models: DigitModels, tmp_path: Path
) -> None:
    opened(tab, gate, PHONE)
    rows = [range(784), X[0].ravel().tolist()]
    (tmp_path / "row.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    tab.drop_files("model-facts", [tmp_path / "row.csv"])
    tab.wait("document.getElementById('chosen').files.length === 1")
    tab.click("csv-header")
    tab.click("send")
    assert answered(tab) == NAMES[digit_models.models["digits"].predict_fixed(X[0]).argmax()]


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_file_of_no_kind_is_told_of_in_view(tab: Tab, gate: Serving, tmp_path: Path, size: tuple[int, int]) -> None:
    opened(tab, gate, size)
    (tmp_path / "odd.png").write_bytes(b"neither ink nor paper")
    shown = (
        "(b => b.top >= 0 && b.bottom <= window.innerHeight)(document.getElementById('error').getBoundingClientRect())"
    )
    tab.drop_files("model-facts", [tmp_path / "odd.png"] * 2)
    tab.wait("document.getElementById('error').innerText")
    assert tab.value(shown)
    tab.drop_files("model-facts", [tmp_path / "odd.png"])
    # What is no picture is not shown as a broken one.
    tab.wait("document.getElementById('chosen').files.length === 1 && document.getElementById('preview').hidden")
    tab.click("send")
    tab.wait("document.getElementById('error').innerText")
    assert tab.text("error").startswith("Input: ")
    assert "PNG" in tab.text("error")
    assert tab.value(shown)
    # The browser itself says that the status was 400.
    assert [complaint for complaint in tab.complaints if "400" not in complaint] == []
    tab.complaints.clear()


def test_drawing_by_keyboard_alone(tab: Tab, gate: Serving) -> None:
    opened(tab, gate, PHONE)
    tab.tab_to("canvas")
    assert "Pen up, column 14 of 28, row 14 of 28." in tab.text("pen")
    tab.press(*["ArrowUp"] * 9, " ", *["ArrowDown"] * 18, " ")
    assert "Pen up, column 14 of 28, row 23 of 28." in tab.text("pen")
    tab.press("Tab")
    tab.tab_to("send")
    tab.press("Enter")
    assert answered(tab) == "one"
    tab.value("document.getElementById('canvas').focus()")
    tab.press("Delete")
    tab.tab_to("send")
    tab.press("Enter")
    tab.wait("document.getElementById('error').innerText")
    assert tab.text("error") == "Nothing is drawn yet."
    # The result of before is not taken for an answer to this.
    assert tab.value("document.getElementById('result').hidden")


def test_numbers_by_keyboard_alone(tab: Tab, gate: Serving, digit_models: DigitModels) -> None:
    opened(tab, gate, DESK)
    tab.tab_to("model")
    tab.press(*["ArrowDown"] * 3)
    tab.wait("document.getElementById('model').value === 'plain'")
    assert "numbers only" in tab.text("kind-note")
    tab.tab_to("row")
    tab.call("Input.insertText", text=",".join(f"{value:.4g}" for value in X[0].ravel()))
    tab.tab_to("send")
    tab.press("Enter")
    assert answered(tab) == str(digit_models.models["plain"].predict_fixed(X[0]).argmax())
    assert "its label, and nothing else" in tab.text("answer-more")


def test_classes_are_called_by_their_names(tab: Tab, tmp_path: Path) -> None:
    policies: dict[str, dict[str, Any]] = {"best": {"output": "top-k", "k": 3}, "scores": {"output": "logits"}}
    for name, policy in policies.items():
        model = lanner.compile(
            MODELS / "mnist_a.onnx", X[:256], input_range=(0, 1), classes=list(NAMES), name=name, **policy
        )
        model.save(tmp_path / f"{name}.lanner")
    best = [f"{NAMES[index]} ({index})" for index in model.predict_fixed(X[0]).ravel().argsort()[:-4:-1]]
    with (
        serving(tmp_path / "state", *(tmp_path / f"{name}.lanner" for name in policies)) as server,
        gateway(tmp_path / "gate", server.address, *server.pin, "--model", "best", "--model", "scores") as gate,
    ):
        told = [told_of_numbers(tab, gate, name) for name in policies]
    assert f"Best classes in order: {', '.join(best)}." in told[0]
    assert re.findall(r"(\w+) \(\d\): -?[\d.]+", told[1]) == list(NAMES)


def told_of_numbers(tab: Tab, gate: Serving, model: str) -> str:
    """What is told beside the answer of a model to the first sample, given as numbers."""
    opened(tab, gate, DESK)
    row = ",".join(f"{value:.4g}" for value in X[0].ravel())
    tab.value(
        f"((list) => {{ list.value = {model!r}; list.dispatchEvent(new Event('change'));"
        f" document.getElementById('row').value = {row!r}; }})(document.getElementById('model'))"
    )
    tab.click("send")
    answered(tab)
    return tab.text("answer-more")


def test_what_goes_wrong_is_told(tab: Tab, gate: Serving) -> None:
    opened(tab, gate, DESK)
    tab.value("document.querySelector('input[value=numbers]').click()")
    tab.tab_to("row")
    tab.call("Input.insertText", text="1,2,3")
    tab.tab_to("send")
    tab.press("Enter")
    tab.wait("document.getElementById('error').innerText")
    assert "a row has 3 values" in tab.text("error")
    assert tab.value("document.getElementById('result').hidden")
    # The browser itself says that the status was 400.
    assert [complaint for complaint in tab.complaints if "400" not in complaint] == []
    tab.complaints.clear()


def test_every_control_has_a_name(tab: Tab, gate: Serving) -> None:
    opened(tab, gate, DESK)
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    controls = {"button", "combobox", "radio", "checkbox", "textbox", "application"}
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if node.get("role", {}).get("value") in controls
    ]
    assert {role for role, _ in named} >= {"button", "combobox", "radio", "checkbox", "application"}
    assert [role for role, name in named if not name] == []


def test_token_is_asked_for_and_kept_out_of_the_address(behind: Serving, browser: Tab, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    options = ("--model", "digits", "--token-file", token_file)
    with gateway(tmp_path / "gate", behind.address, *behind.pin, *options) as process:
        browser.view(*DESK)
        browser.open(process.document["url"] + "/")
        browser.wait("!document.getElementById('unlock').hidden")
        assert browser.value("document.activeElement.id") == "token"
        browser.call("Input.insertText", text="wrong")
        browser.press("Enter")
        browser.wait("document.getElementById('error').innerText.includes('token')")
        token = token_file.read_text().strip()
        browser.value("document.getElementById('token').value = ''")
        browser.call("Input.insertText", text=token)
        browser.press("Enter")
        browser.wait("!document.getElementById('ask').hidden")
        drawn(browser, SEVEN)
        browser.click("send")
        assert answered(browser) == "seven"
        assert not [request for request in browser.requests if token in request]
        kept = "JSON.stringify([localStorage, sessionStorage, document.cookie, document.getElementById('token').value])"
        assert browser.value(kept) == '[{},{},"",""]'


def test_screenshot_shows_ink_where_it_was_drawn(tab: Tab, gate: Serving) -> None:
    opened(tab, gate, DESK)
    drawn(tab, ((0.5, 0.2), (0.5, 0.8)))
    pixels = tab.value(
        "Array.from(document.getElementById('canvas').getContext('2d').getImageData(0, 0, 280, 280).data)"
    )
    grey = np.array(pixels, np.uint8).reshape(280, 280, 4)[..., 0]
    assert (grey[70:210, 135:145] < 50).all()
    assert (grey[:, :100] > 200).all()
