"""One person at the page: what is pressed, what is seen, what is heard."""

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
]
PATIENCE_MS = 120_000  # machines are shared and slow; nothing here waits for time to pass


class Visitor:
    """A tab with storage of its own. Leaving fails if the console complained or another host was called."""

    def __init__(self, browser: Any, url: str, fragment: str = "", **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self.expected: list[str] = []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._met(request.url))
        self.page.on("websocket", lambda socket: self._met(socket.url.replace("ws:", "http:", 1)))
        self.page.goto(url + "/" + fragment)

    def _met(self, url: str) -> None:
        if not url.startswith((self.url + "/", f"blob:{self.url}/")):
            self.strangers.append(url)

    def leave(self) -> None:
        self.context.close()
        assert not self.strangers
        assert [said for said in self.complaints if not any(part in said for part in self.expected)] == []

    def press(self, name: str, exact: bool = True) -> None:
        self.page.get_by_role("button", name=name, exact=exact).click()

    def write(self, text: str) -> None:
        self.page.locator("#text").fill(text)

    def slide(self, name: str, value: float) -> None:
        """Moves a slider as a hand would, telling the page."""
        self.page.locator(f"#{name}").fill(f"{value:g}")

    def text(self, place: str) -> str:
        return str(self.page.locator(place).inner_text())

    def told(self, name: str) -> str:
        """What the player says of itself."""
        return str(self.page.locator(".transport").get_attribute(f"data-{name}"))

    def wait(self, place: str) -> None:
        self.page.wait_for_selector(place)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """What is pressed inside makes the player begin anew; afterwards it tells of that, and of nothing before."""
        strip = self.page.locator(".transport")
        before = strip.get_attribute("data-turn") if strip.count() else ""
        yield
        self.wait(f".transport:not([data-turn='{before}'])")

    def say(self, text: str | None = None) -> None:
        """Speaks what is written, and hears it out."""
        if text is not None:
            self.write(text)
        with self.starting():
            self.press("Speak")
        self.hear_out()

    def hear_out(self) -> None:
        """Until all has come and the last sample was played."""
        self.wait(".transport[data-state=whole][data-playing=false][data-heard]")

    @contextmanager
    def watching_words(self) -> Iterator[list[tuple[float, int]]]:
        """Every change of the place and of the lit word, each as (seconds, number of the word or -1)."""
        self.page.evaluate(
            """() => {
              window.seen = [];
              window.watcher = new MutationObserver(() => {
                const words = document.querySelector(".lyrics");
                const lit = words?.querySelector("[aria-current]");
                if (words?.dataset.at) window.seen.push([Number(words.dataset.at), lit ? Number(lit.dataset.n) : -1]);
              });
              const attributeFilter = ["data-at", "aria-current"];
              window.watcher.observe(document.body, {subtree: true, attributes: true, attributeFilter});
            }"""
        )
        seen: list[tuple[float, int]] = []
        yield seen
        seen += [(at, int(n)) for at, n in self.page.evaluate("() => (window.watcher.disconnect(), window.seen)")]


def digest(pcm: bytes) -> int:
    """The same sum over 16-bit samples that the player keeps of what it played."""
    made = 0
    for sample in np.frombuffer(pcm, "<i2").tolist():
        made = (made * 31 + sample) & 0xFFFFFFFF
    return made - (1 << 32) if made >> 31 else made


def until(met: Callable[[], bool], what: str) -> None:
    """Waits for a condition; the time is only there so that a broken test ends."""
    give_up = time.monotonic() + PATIENCE_MS / 1000
    while not met():
        assert time.monotonic() < give_up, what
        time.sleep(0.02)


def ok(response: httpx2.Response) -> httpx2.Response:
    assert response.status_code == 200, response.text
    return response
