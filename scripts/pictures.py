"""Pictures of the page for the README: a browser before a real server, doing what a newcomer would do.

`python -m scripts.pictures` writes docs/images/page-{speak,batching}-{light,dark}.png. `--url` takes a server that runs
already; `--all DIR` also puts every view, width and theme into a folder, to be looked at.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs/images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required"]
PORT = 18_893
WIDTHS = (360, 1024, 1600)
THEMES = ("light", "dark")
SIZE = ViewportSize(width=1280, height=1040)
CALLERS = "8"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", help="a server that runs already")
    options.add_argument("--all", type=Path, help="a folder for every view, width and theme")
    chosen = options.parse_args()
    with served(chosen.url) as url, sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for view in (speak, batching):
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
            view(page, url)
            for theme in THEMES:
                taken(page, theme, IMAGES / f"page-{view.__name__}-{theme}.png")
            if chosen.all:
                every(page, chosen.all, view.__name__)
        browser.close()


def speak(page: Page, url: str) -> None:
    """A sentence has been said in a blend of two voices, and is being heard again."""
    page.goto(url)
    page.get_by_role("button", name="Add Bella to the blend").click()
    for turn in (1, 2):  # the first warms up what a server in use has warm
        page.get_by_role("button", name="Speak", exact=True).click()
        # Each speaking is a stop and a start, but for the very first.
        started = f".transport[data-turn='{2 * turn - 1}']"
        page.wait_for_selector(f"{started}[data-state=whole][data-playing=false][data-heard]", timeout=300_000)
    page.locator(".lyrics [data-n='9']").click()
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".transport[data-playing=false]")


def batching(page: Page, url: str) -> None:
    """A crowd has been served under both policies."""
    page.goto(f"{url}/#batching")
    page.wait_for_selector("[data-standing=live]")
    page.locator("#size").fill(CALLERS)
    page.get_by_role("button", name="deadline against window").click()
    page.wait_for_selector("#speedup", timeout=300_000)
    page.wait_for_selector(".load button:has-text('All together')")


def taken(page: Page, theme: str, path: Path, *, whole: bool = False) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.wait_for_selector(f"html[data-theme={theme}]")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=whole, animations="disabled")
    print(path)


def every(page: Page, folder: Path, name: str) -> None:
    for theme in THEMES:
        for width in WIDTHS:
            page.set_viewport_size(ViewportSize(width=width, height=900))
            taken(page, theme, folder / f"{name}-{theme}-{width}.png", whole=True)


@contextmanager
def served(url: str | None) -> Iterator[str]:
    """The address of a server that is ready: this one, or one of our own."""
    if url:
        yield url.rstrip("/")
        return
    command = [sys.executable, "-m", "tutti", "serve", "--port", str(PORT)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            while not ready(f"http://127.0.0.1:{PORT}"):
                if server.poll() is not None:
                    raise SystemExit("the server did not start: tutti serve")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{PORT}"
        finally:
            server.terminate()


def ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=2) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


if __name__ == "__main__":
    main()
