"""The pages of docs/integrations: each is listed, and its code can be run against another address."""

import re

import pytest

from scripts.test_clients import BRIDGE_PORT, CLIENTS, PAGES, PROGRAMS, SERVER_URL, TEXT, WYOMING_PORT, Client

README = (PAGES / "README.md").read_text(encoding="utf-8")
NOT_RUN = {"open-webui", "sillytavern"}


def test_every_page_is_run_or_says_that_it_is_not() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert {client.page for client in CLIENTS} == pages - NOT_RUN
    assert all("Not run for this page" in (PAGES / f"{page}.md").read_text(encoding="utf-8") for page in NOT_RUN)
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", README)) == pages


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: "-".join((client.page, client.packages[0])))
def test_each_page_has_one_code_block_with_text_and_address(client: Client) -> None:
    page = (PAGES / f"{client.page}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```(?:python|js)\n(.*?)```", page, re.DOTALL)
    if not client.node:
        compile(code, client.page, "exec")
    assert TEXT in code
    assert "speech.wav" in code
    addresses = (SERVER_URL, SERVER_URL.replace("http", "ws"), WYOMING_PORT, BRIDGE_PORT)
    assert any(address in code for address in addresses)
    assert not client.streams or "first sound" in code
    assert client.typo is None or client.typo[0] in code


def test_the_table_lists_all_clients_as_ok() -> None:
    rows = [line.split(" | ") for line in README.splitlines() if line.startswith("| ") and line.count("|") == 6][2:]
    names = [*(client.page for client in CLIENTS), *(program.name for program in PROGRAMS)]
    assert [row[0].removeprefix("| ") for row in rows] == names
    assert all(row[3] == "ok" for row in rows)
