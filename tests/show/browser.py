"""A headless Chromium, driven through its debugging pipe; needs no package but the browser."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
PIPED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes the browser with its debugging pipe, which is always descriptors 3 and 4."""


def found() -> str | None:
    """The browser's path, or None. $CHROMIUM names another."""
    return next(
        filter(None, map(shutil.which, filter(None, (os.environ.get("CHROMIUM"), *NAMES)))), None
    )


class Browser:
    """One page of a browser of its own; `events` holds what the browser said meanwhile."""

    def __init__(self, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        path = found()
        assert path is not None
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out))
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", PIPED, str(high_in), str(high_out), path),
                *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"),
                *("--no-first-run", "--hide-scrollbars", "--disable-background-networking"),
                *(f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(high_in, high_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, high_in, high_out):
            os.close(fd)
        self._in, self._out = ours_in, ours_out
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(
        self, path: Path, width: int, height: int, *, dark: bool = False, media: str = ""
    ) -> None:
        """Show a file in a window of that size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        deadline = time.monotonic() + PATIENCE
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            assert time.monotonic() < deadline, "the page never loaded"
            self.events.append(self._receive())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and let go of a key."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=9
            )

    def picture(self, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """Errors, warnings and policy violations since the page was opened."""
        texts = []
        for event in self.events:
            if event.get("method") == "Log.entryAdded":
                texts.append(event["params"]["entry"]["text"])
            elif event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                texts.append(json.dumps(event["params"]))
        return texts

    def requests(self) -> list[str]:
        """Everything the page asked for."""
        kind = "Network.requestWillBeSent"
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == kind]

    def close(self) -> None:
        self._session = None
        try:
            self.call("Browser.close")
        finally:
            self._process.terminate()
            self._process.wait(PATIENCE)
            os.close(self._in)
            os.close(self._out)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser went away"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message
