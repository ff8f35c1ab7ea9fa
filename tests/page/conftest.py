"""A real browser and a real server; errors in the console and calls to other hosts fail the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import make_fake_engine
from tests.page.browser import CHROMIUM_FLAGS, Visitor
from tests.server.harness import RunningServer, serving
from tutti.server.routes.page import PAGE_FOLDER

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def voice_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder)) as running:
        yield running


@pytest.fixture(scope="session")
def page_folder() -> Path:
    """The folder of the built page; skip the test if it was not built."""
    if not (PAGE_FOLDER / "index.html").exists():
        pytest.skip("the page is not built: make page (needs npm)")
    return PAGE_FOLDER


# Once per module: its event loop counts as running in this thread, and other tests have their own.
@pytest.fixture(scope="module")
def browser(page_folder: Path) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Open the page of a server: `visit(server, "#batching")`; each visitor has its own storage."""
    visitors: list[Visitor] = []

    def open_page(server: RunningServer, fragment: str = "", **options: Any) -> Visitor:
        visitors.append(Visitor(browser, server.url, fragment, **options))
        return visitors[-1]

    yield open_page
    for visitor in visitors:
        visitor.close()
