"""The page, its streams and the API reference below a path of nginx, by deploy/nginx/below-a-path.conf."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.deploy.test_balancers import free_port, needs_nginx
from tests.fakes import silent_voices, tone_engine
from tests.page.browser import Visitor
from tests.page.test_page_reference import ANSWER, try_out
from tests.server.harness import RunningServer, serving

pytestmark = [pytest.mark.browser, pytest.mark.server, pytest.mark.process, needs_nginx]

CONFIG = Path(__file__).parents[2] / "deploy/nginx/below-a-path.conf"
Visit = Callable[..., Visitor]


class Below:
    """Where visitors and callers find the server."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(voice_folder))) as running:
        yield running


@pytest.fixture(scope="module")
def below(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Below]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    text = (
        CONFIG.read_text().replace("127.0.0.1:80;", f"127.0.0.1:{port};").replace("http://127.0.0.1:8880", server.url)
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder};" for kind in kinds)
    (folder / "conf").write_text(f"pid {folder}/pid; events {{}} http {{ access_log off; {folders} {text} }}")
    command = ["nginx", "-e", str(folder / "errors"), "-c", str(folder / "conf"), "-g", "daemon off;"]
    with subprocess.Popen(command) as process:
        try:
            while not (folder / "pid").exists():
                assert process.poll() is None, (folder / "errors").read_text()
                time.sleep(0.02)
            yield Below(f"http://127.0.0.1:{port}/tutti")
        finally:
            process.terminate()


def test_the_page_speaks(below: Below, server: RunningServer, visit: Visit) -> None:
    """Every request of a visitor goes below the path, or closing the visitor fails."""
    visitor = visit(below)
    visitor.speak("To be.")
    assert int(visitor.player_data("played")) == len(server.speak(input="To be.", response_format="pcm").content) // 2
    assert f"{below.url}/v1/audio/speech" in visitor.text(".export")


def test_batches_are_watched_and_simulated(below: Below, visit: Visit) -> None:
    """Server-sent events and WebSockets pass."""
    visitor = visit(below, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size-together", 2)
    visitor.press("Start")
    visitor.wait(".run[data-mode=together][data-done='2']:not([data-total-ms=''])")


def test_the_reference_lists_and_tries_routes_and_leads_back(below: Below, visit: Visit) -> None:
    visitor = visit(below, "docs")
    visitor.wait(".opblock")
    try_out(visitor, "/v1/models")
    assert '"kokoro"' in visitor.text(ANSWER)
    assert f"{below.url}/v1/models" in visitor.text(".request-url")
    visitor.page.get_by_role("link", name="Audiobooks", exact=True).click()
    visitor.page.wait_for_url(f"{below.url}/#books")


def test_what_the_server_refers_to_lies_below_the_path(below: Below) -> None:
    page = httpx2.get(f"{below.url}/web/", headers={"accept": "text/html"}, follow_redirects=True, timeout=60)
    assert str(page.url) == f"{below.url}/"
    made = httpx2.post(f"{below.url}/v1/jobs", files={"file": ("a.txt", b"Deep water.")}, timeout=60)
    assert made.headers["location"] == f"{below.url}/v1/jobs/{made.json()['id']}"


def test_it_can_be_installed_as_an_app(below: Below, visit: Visit) -> None:
    visitor = visit(below)
    browser = visitor.context.new_cdp_session(visitor.page)
    manifest = browser.send("Page.getAppManifest")
    assert (manifest["url"], manifest["errors"]) == (f"{below.url}/manifest.webmanifest", [])
    problems = browser.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [problem["errorId"] for problem in problems if problem["errorId"] != "in-incognito"] == []
