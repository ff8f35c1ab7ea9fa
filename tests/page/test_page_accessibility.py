"""All views are accessible in every width and theme, with or without a key."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.page.browser import Visitor
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
KEY = "a-key-of-ours"
VIOLATIONS = "axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes.map(({html}) => html)]))"


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(voice_folder)), api_keys=(KEY,)) as running:
        yield running


def test_the_key_is_requested_once_and_in_no_link(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected_errors = ["401 (Unauthorized)"]
    visitor.enter_text("One.")
    visitor.press("Speak")
    visitor.page.get_by_label("Key", exact=True).fill(KEY)
    visitor.press("Save")
    visitor.wait_for_end()  # the request goes on by itself
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    assert KEY not in visitor.page.url
    assert KEY not in visitor.text("#code")
    visitor.page.goto(server.url + "/#batching")
    visitor.page.reload()
    visitor.wait("[data-connection=live]")
    visitor.slide("size-together", 3)
    visitor.press("Start")
    visitor.wait(".run[data-mode=together][data-done='3']")
    assert server.get("/v1/stats").status_code == 401


def visit_with_key(visit: Visit, server: RunningServer, fragment: str, **options: object) -> Visitor:
    """Open the page with the key stored and some content in either view."""
    visitor = visit(server, **options)
    visitor.page.evaluate(f"localStorage.setItem('tutti.key', '{KEY}')")
    visitor.page.reload()
    visitor.wait(".card")
    visitor.press("Add Sky to the blend")
    for text in ("One.", "Two."):
        visitor.speak(text)
    if fragment == "#speak":
        return visitor
    visitor.page.goto(f"{server.url}/{fragment}")
    if fragment == "#batching":
        visitor.wait("[data-connection=live]")
        visitor.slide("size-together", 2)
        for button, mode in {"Start": "together", "Compare": "deadline"}.items():
            visitor.press(button)
            visitor.wait(f".run[data-mode={mode}]:not([data-total-ms=''])")
    if fragment == "#books":
        book = {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# One\n\nIt fell."}
        visitor.page.locator("#book").set_input_files(book)
        visitor.press("Make audiobook")
        visitor.wait(".job[data-state=done]")
        visitor.page.locator("#book").set_input_files(book)
        visitor.wait("#book-voice")
    if fragment == "docs":
        for path in ("/v1/audio/speech", "/v1/jobs"):
            visitor.page.locator(".opblock-summary-path", has_text=path).first.click()
            visitor.wait(f".opblock.is-open:has([data-path='{path}']) .responses-table")
    return visitor


@pytest.mark.parametrize("fragment", ["#speak", "#books", "#batching", "docs"])
def test_axe_finds_no_violation_and_the_page_fits_its_width(server: RunningServer, visit: Visit, fragment: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make page (needs npm)")
    visitor = visit_with_key(visit, server, fragment, reduced_motion="reduce")
    visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme, width in product(("light", "dark"), (360, 1024, 1600)):
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.wait(f"html[data-theme={scheme}]")
        excess = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert excess <= 0, f"{excess} pixels too wide at {width}"
        violations = visitor.page.evaluate(VIOLATIONS)
        assert not violations, (scheme, width, violations)


def test_the_theme_can_be_switched_and_persists(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, color_scheme="light")
    visitor.press("Dark theme")
    visitor.page.reload()
    visitor.wait("html[data-theme=dark]")
    visitor.press("Light theme")
    visitor.wait("html[data-theme=light]")


def test_a_phone_shows_all_that_is_needed_to_hear_something_at_once(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, viewport={"width": 390, "height": 844})
    for needed in ("#text", ".text button.primary", "#voices-title", ".voices input[type=search]"):
        box = visitor.page.locator(needed).bounding_box()
        assert box["x"] >= 0, needed
        assert box["x"] + box["width"] <= 390, needed
        assert box["y"] + box["height"] <= 844, needed
