"""Take the screenshots of the page for the README, with a browser and a real server.

`python -m scripts.pictures` writes docs/images/page-{speak,books,batching}-{light,dark}.png. `--url` uses a running
server; `--all DIR` also saves every view, width and theme to a folder for review.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs/images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required"]
PORT = 18_893
WIDTHS = (360, 1024, 1600)
THEMES = ("light", "dark")
SIZE = ViewportSize(width=1280, height=720)  # what a newcomer sees first
LISTENERS = "4"
BOOK = """# The Third Winter

by Ada Example

## Snow

It began to fall before noon, and by the evening the road was gone. Nobody in the valley spoke of it.

## Ice

In January the lake held. The children crossed it first, and then the carts, and at last the church went over too.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="use a running server")
    parser.add_argument("--all", type=Path, help="also save every view, width and theme here")
    arguments = parser.parse_args()
    with running_server(arguments.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for view in (speak, books, batching):
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
            view(page, url)
            for theme in THEMES:
                screenshot(page, theme, IMAGES / f"page-{view.__name__}-{theme}.png")
            if arguments.all:
                screenshot_all(page, arguments.all, view.__name__)
            page.close()
        browser.close()


def speak(page: Page, url: str) -> None:
    """Show a text spoken in a blend of two voices, paused during a replay."""
    page.goto(url)
    page.get_by_role("button", name="Add Bella to the blend").click()
    page.get_by_role("button", name="Speak", exact=True).click()
    page.wait_for_selector(".player[data-state=whole][data-playing=false][data-played]", timeout=300_000)
    page.get_by_role("button", name="Clear").click()  # its speed is that of this machine now
    page.locator(".spoken-text [data-n='12']").click()
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".player[data-playing=false]")


def books(page: Page, url: str) -> None:
    """Show one finished audiobook, and one that is being read."""
    page.goto(f"{url}/#books")
    for n, text in enumerate((BOOK, BOOK * 3)):
        page.locator("#book").set_input_files(
            {"name": f"winter-{n}.md", "mimeType": "text/markdown", "buffer": text.encode()}
        )
        page.get_by_role("button", name="Make audiobook").click()
        if n == 0:
            page.wait_for_selector(".job[data-state=done]", timeout=300_000)
    page.wait_for_selector(".job[data-state=running] .state:has-text('%')", timeout=300_000)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".job[data-state=cancelled]")


def batching(page: Page, url: str) -> None:
    """Show listeners served one by one and together."""
    page.goto(f"{url}/#batching")
    page.wait_for_selector("[data-connection=live]")
    page.locator("#size-together").fill(LISTENERS)
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(".load .speedup", timeout=300_000)


def screenshot(page: Page, theme: str, path: Path, *, whole: bool = False) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.wait_for_selector(f"html[data-theme={theme}]")
    page.evaluate("scrollTo(0, 0)")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=whole, animations="disabled")
    print(path)


def screenshot_all(page: Page, folder: Path, name: str) -> None:
    for theme in THEMES:
        for width in WIDTHS:
            page.set_viewport_size(ViewportSize(width=width, height=900))
            screenshot(page, theme, folder / f"{name}-{theme}-{width}.png", whole=True)


@contextmanager
def running_server(url: str | None) -> Iterator[str]:
    """Yield the URL of a ready server: the given one, or a new process."""
    if url:
        yield url.rstrip("/")
        return
    with TemporaryDirectory() as data, start_server(data) as server:
        try:
            while not is_ready(f"http://127.0.0.1:{PORT}"):
                if server.poll() is not None:
                    raise SystemExit("the server did not start: tutti serve")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{PORT}"
        finally:
            server.terminate()


def start_server(data: str) -> "subprocess.Popen[bytes]":
    """Start a server without jobs of earlier runs."""
    command = [sys.executable, "-m", "tutti", "serve", "--port", str(PORT), "--data", data]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=2) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


if __name__ == "__main__":
    main()
