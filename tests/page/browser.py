"""Drive the page in a browser: press buttons, read what is shown, check what is played."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import numpy as np

CHROMIUM_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--autoplay-policy=no-user-gesture-required",
    # A name as in a home network: over plain HTTP its origin is not secure, as that of localhost would be.
    *("--host-resolver-rules=MAP nas 127.0.0.1", "--no-proxy-server"),
]
INSECURE_HOST = "nas"
TIMEOUT_MS = 120_000  # generous for slow machines; only a failing test waits that long


class Visitor:
    """A tab with its own storage. Closing fails if the console has errors or another host was called."""

    def __init__(
        self,
        browser: Any,
        url: str,
        fragment: str = "",
        *,
        host: str | None = None,
        script: str = "",
        **options: Any,
    ) -> None:
        """`host`: another name of the server; `script`: runs before those of the page."""
        self.url = url if host is None else url.replace("127.0.0.1", host)
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        if script:
            self.page.add_init_script(script)
        self.page.set_default_timeout(TIMEOUT_MS)
        self.console_errors: list[str] = []
        self.other_hosts: list[str] = []
        self.expected_errors = ["Cross-Origin-Opener-Policy header has been ignored"] if host else []
        self.page.on("console", self._check_console)
        self.page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        self.page.on("request", lambda request: self._check_host(request.url))
        self.page.on("websocket", lambda socket: self._check_host(socket.url.replace("ws:", "http:", 1)))
        self.page.goto(self.url + "/" + fragment)

    def _check_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.console_errors.append(message.text)

    def _check_host(self, url: str) -> None:
        if not url.startswith((self.url + "/", f"blob:{self.url}/")):
            self.other_hosts.append(url)

    def close(self) -> None:
        self.context.close()
        assert not self.other_hosts
        errors = [error for error in self.console_errors if not any(part in error for part in self.expected_errors)]
        assert errors == [], errors

    def press(self, name: str, exact: bool = True) -> None:
        self.page.get_by_role("button", name=name, exact=exact).click()

    def enter_text(self, text: str) -> None:
        self.page.locator("#text").fill(text)

    def slide(self, name: str, value: float) -> None:
        """Set a slider and send its input event."""
        self.page.locator(f"#{name}").fill(f"{value:g}")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def player_data(self, name: str) -> str:
        """Read a data attribute of the player."""
        return str(self.page.locator(".player").get_attribute(f"data-{name}"))

    def wait(self, selector: str) -> None:
        self.page.wait_for_selector(selector)

    @contextmanager
    def new_playback(self) -> Iterator[None]:
        """Wait until the player has started what is pressed inside the block."""
        player = self.page.locator(".player")
        before = player.get_attribute("data-command") if player.count() else ""
        yield
        self.wait(f".player:not([data-command='{before}'])")

    def speak(self, text: str | None = None) -> None:
        """Speak the text and wait until it has been played."""
        if text is not None:
            self.enter_text(text)
        with self.new_playback():
            self.press("Speak")
        self.wait_for_end()

    def wait_for_end(self) -> None:
        """Wait until all audio has arrived and the last sample was played."""
        self.wait(".player[data-state=whole][data-playing=false][data-played]")

    @contextmanager
    def record_words(self) -> Iterator[list[tuple[float, int]]]:
        """Record every change of the position and the highlighted word, as (seconds, number of the word or -1)."""
        self.page.evaluate(
            """() => {
              window.recorded = [];
              window.observer = new MutationObserver(() => {
                const words = document.querySelector(".spoken-text");
                const current = words?.querySelector("[aria-current]");
                const n = current ? Number(current.dataset.n) : -1;
                if (words?.dataset.at) window.recorded.push([Number(words.dataset.at), n]);
              });
              const attributeFilter = ["data-at", "aria-current"];
              window.observer.observe(document.body, {subtree: true, attributes: true, attributeFilter});
            }"""
        )
        recorded: list[tuple[float, int]] = []
        yield recorded
        changes = self.page.evaluate("() => (window.observer.disconnect(), window.recorded)")
        recorded += [(at, int(n)) for at, n in changes]


def digest(pcm: bytes) -> int:
    """Compute the player's checksum over 16-bit samples."""
    total = 0
    for sample in np.frombuffer(pcm, "<i2").tolist():
        total = (total * 31 + sample) & 0xFFFFFFFF
    return total - (1 << 32) if total >> 31 else total


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll a condition; the timeout only ends a failing test."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def ok(response: httpx2.Response) -> httpx2.Response:
    assert response.status_code == 200, response.text
    return response
