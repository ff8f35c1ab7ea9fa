"""A real browser before a real server; whatever it complains about, and whomever else it calls, fails the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.browser import CHROMIUM_FLAGS, Visitor
from tests.server.harness import House, make_stage, serving
from tutti.server.routes.page import BUILT

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def voice_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture(scope="module")
def house(voice_folder: Path) -> Iterator[House]:
    with serving(make_stage(voice_folder)) as running:
        yield running


@pytest.fixture(scope="session")
def built() -> Path:
    """The built page, or the way to get it."""
    if not (BUILT / "index.html").exists():
        pytest.skip("the page is not built: make page (needs npm)")
    return BUILT


# For each module anew: while it lives, its event loop counts as running in this thread, and other tests have their own.
@pytest.fixture(scope="module")
def browser(built: Path) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Opens the page of a server: `visit(house, "#batching")`; each visitor has storage of its own."""
    visitors: list[Visitor] = []

    def opened(house: House, fragment: str = "", **options: Any) -> Visitor:
        visitors.append(Visitor(browser, house.url, fragment, **options))
        return visitors[-1]

    yield opened
    for visitor in visitors:
        visitor.leave()
