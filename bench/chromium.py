"""A headless Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from websockets.sync.client import ClientConnection, connect

#: Seconds after which a page counts as hung.
PATIENCE = 60.0

#: What keys are named by the protocol: code, and the text that they type.
KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    " ": ("Space", 32, " "),
    "Delete": ("Delete", 46, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}


def chromium() -> str | None:
    """The path of the browser, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tab:
    """A page in the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._count = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol; what the page requests and complains of meanwhile is kept."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == self._count:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self._keep(message)

    def _keep(self, message: dict[str, Any]) -> None:
        if message["method"] == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(str(message["params"]["entry"]["text"]))

    def view(self, width: int, height: int, *, mobile: bool = False, dark: bool = False) -> None:
        """Set the size of the window, and light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Load a page."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:  # noqa: ANN401 - what the page says
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression holds."""
        deadline = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < deadline, (expression, self.complaints)
            time.sleep(0.05)

    def text(self, element: str) -> str:
        """The visible text of an element, by its id."""
        return str(self.value(f"document.getElementById({element!r}).innerText"))

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            code, number, text = KEYS[key]
            named = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
            self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def tab_to(self, element: str) -> None:
        """Press Tab until an element, named by its id or its value, has the focus."""
        there = f"[document.activeElement.id, document.activeElement.value].includes({element!r})"
        for _ in range(30):
            if self.value(there):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not lead to {element}")

    def drag(self, places: Sequence[tuple[float, float]]) -> None:
        """Draw a stroke with the mouse through places of the window."""
        for number, (x, y) in enumerate(places):
            kind = "mousePressed" if number == 0 else "mouseMoved"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        x, y = places[-1]
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)

    def click(self, element: str) -> None:
        """Click the middle of an element with the mouse."""
        self.drag([self._middle(element)])

    def drop_files(self, element: str, paths: Sequence[Path]) -> None:
        """Drop files of this machine on the middle of an element, as from a file manager."""
        x, y = self._middle(element)
        files = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=files)

    def _middle(self, element: str) -> tuple[float, float]:
        """The middle of an element in the window, into which it is scrolled."""
        x, y = self.value(
            f"(() => {{ const e = document.getElementById({element!r}); e.scrollIntoView({{block: 'center'}});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def choose_file(self, element: str, path: Path) -> None:
        """Choose a file in a file input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=f"#{element}")["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def screenshot(self, path: Path) -> None:
        """Save a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browsing() -> Iterator[Tab]:
    """A new tab of a new browser, until the block ends."""
    program = chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="lanner-browser-", ignore_cleanup_errors=True) as profile:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                with connect(_tab_address(Path(profile), process), max_size=None) as socket:
                    yield Tab(socket)
            finally:
                process.kill()


def _tab_address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """The websocket of a new tab, once the browser has written its port into its profile."""
    ready, deadline = profile / "DevToolsActivePort", time.monotonic() + PATIENCE
    while not (ready.exists() and ready.read_text().count("\n") >= 1):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    port = ready.read_text().splitlines()[0]
    with urlopen(Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")) as answer:
        return str(json.load(answer)["webSocketDebuggerUrl"])
