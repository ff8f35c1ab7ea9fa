"""How the page is served: to browsers only, small, without other hosts, and with a hint if it was not built."""

import gzip
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.server.harness import RunningServer
from tutti.server.routes.page import page_routes

HTML = {"accept": "text/html,application/xhtml+xml"}
MAX_SCRIPT_BYTES = 100_000


def client(folder: Path) -> TestClient:
    app = FastAPI()
    app.include_router(page_routes(folder))
    return TestClient(app)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>tutti</title>" + " " * 500)
    (tmp_path / "assets/index-abc.js").write_text("export {};")
    return tmp_path


def test_browsers_get_the_page_and_programs_get_json(folder: Path) -> None:
    page = client(folder)
    assert page.get("/", headers=HTML).text.startswith("<!doctype html>")
    assert page.get("/", headers={"accept": "*/*"}).json()["object"] == "tutti"
    assert page.head("/", headers=HTML).status_code == 200


def test_a_server_without_a_page_says_how_to_build_it(tmp_path: Path) -> None:
    response = client(tmp_path / "missing").get("/", headers=HTML)
    assert response.status_code == 200
    assert "make page" in response.text


def test_the_policy_forbids_other_hosts_and_inline_scripts(folder: Path) -> None:
    policy = client(folder).get("/", headers=HTML).headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert {value for name, value in rules.items() if name.endswith("-src")} == {"'none'", "'self'"}
    assert rules["frame-ancestors"] == "'none'"


def test_hashed_files_are_immutable_and_the_rest_is_revalidated(folder: Path) -> None:
    page = client(folder)
    assert "immutable" in page.get("/assets/index-abc.js").headers["cache-control"]
    first = page.get("/", headers=HTML)
    assert first.headers["cache-control"] == "no-cache"
    again = page.get("/", headers=HTML | {"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_it_is_compressed_if_the_client_accepts_gzip(folder: Path) -> None:
    page = client(folder)
    compressed = page.get("/", headers=HTML | {"accept-encoding": "gzip"})
    plain = page.get("/", headers=HTML | {"accept-encoding": "identity"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < int(plain.headers["content-length"])
    assert compressed.text == plain.text


@pytest.mark.parametrize("path", ["/assets/../page.py", "/assets/%2e%2e/index.html", "/page.py", "/assets/", "/assets"])
def test_no_other_file_is_served(folder: Path, path: str) -> None:
    (folder.parent / "page.py").write_text("secret")
    assert client(folder).get(path).status_code == 404


def test_the_first_view_loads_little_script(page_folder: Path) -> None:
    index = (page_folder / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r'(?:src|href)="\./(assets/[^"]+\.js)"', index)
    assert scripts
    worklets = [path.relative_to(page_folder).as_posix() for path in (page_folder / "assets").glob("worklet-*.js")]
    assert len(worklets) == 1
    size = sum(len(gzip.compress((page_folder / name).read_bytes())) for name in [*scripts, *worklets])
    assert size < MAX_SCRIPT_BYTES


def test_the_built_page_names_no_other_host(page_folder: Path) -> None:
    index = (page_folder / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!\./)[^"]*"', index.replace('href="docs"', ""))
    assert "<style" not in index
    assert "<script>" not in index


@pytest.mark.server
def test_the_server_itself_serves_it(server: RunningServer, page_folder: Path) -> None:
    response = server.get("/", headers=HTML)
    assert response.content == (page_folder / "index.html").read_bytes()
