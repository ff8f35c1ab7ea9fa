"""Good manners of both views: for every reader, every width, every theme, with or without a key."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.page.browser import Visitor
from tests.server.harness import RunningServer, serving

Visit = Callable[..., Visitor]
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
KEY = "a-key-of-ours"
FAULTS = "axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes.map(({html}) => html)]))"


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(voice_folder)), api_keys=(KEY,)) as running:
        yield running


def test_a_key_is_asked_for_once_and_is_in_no_link(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected = ["401 (Unauthorized)"]
    visitor.write("One.")
    visitor.press("Speak")
    visitor.page.get_by_label("Key", exact=True).fill(KEY)
    visitor.press("Keep it")
    visitor.say()
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    assert KEY not in visitor.page.url
    assert KEY not in visitor.text("#code")
    visitor.page.goto(server.url + "/#batching")
    visitor.page.reload()
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 3)
    visitor.press("All together")
    visitor.wait(".run[data-done='3']")
    assert server.get("/v1/stats").status_code == 401


def seated(visit: Visit, server: RunningServer, fragment: str, **options: object) -> Visitor:
    """A visitor who holds the key, with something to see in either view."""
    visitor = visit(server, **options)
    visitor.page.evaluate(f"localStorage.setItem('tutti.key', '{KEY}')")
    visitor.page.reload()
    visitor.wait(".card")
    visitor.press("Add Sky to the blend")
    for text in ("One.", "Two."):
        visitor.say(text)
    if fragment == "#batching":
        visitor.page.goto(server.url + "/#batching")
        visitor.wait("[data-standing=live]")
        visitor.slide("size", 2)
        visitor.press("deadline against window")
        visitor.wait("#speedup")
    return visitor


@pytest.mark.parametrize("fragment", ["#speak", "#batching"])
def test_axe_finds_nothing_wrong_and_nothing_sticks_out(server: RunningServer, visit: Visit, fragment: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make page (needs npm)")
    visitor = seated(visit, server, fragment, reduced_motion="reduce")
    visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme, width in product(("light", "dark"), (360, 1024, 1600)):
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.wait(f"html[data-theme={scheme}]")
        over = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, f"{over} pixels too wide at {width}"
        found = visitor.page.evaluate(FAULTS)
        assert not found, (scheme, width, found)


def test_the_theme_can_be_turned_and_stays_turned(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, color_scheme="light")
    visitor.press("Dark colours")
    visitor.page.reload()
    visitor.wait("html[data-theme=dark]")
    visitor.press("Light colours")
    visitor.wait("html[data-theme=light]")
