"""The pages of docs/integrations: each can be run, is listed, and speaks to the address that the trial replaces."""

import re

import pytest

from scripts.test_clients import BRIDGE, CLIENTS, HERE, PAGES, TEXT, WYOMING, Client

README = (PAGES / "README.md").read_text(encoding="utf-8")
NOT_RUN = {"open-webui", "sillytavern"}


def test_every_page_is_run_or_says_that_it_was_not() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert {client.page for client in CLIENTS} == pages - NOT_RUN
    assert all("Not run for this page" in (PAGES / f"{page}.md").read_text(encoding="utf-8") for page in NOT_RUN)
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", README)) == pages


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: "-".join((client.page, client.packages[0])))
def test_its_code_is_one_piece_with_the_text_and_the_address_that_are_replaced(client: Client) -> None:
    page = (PAGES / f"{client.page}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```(?:python|js)\n(.*?)```", page, re.DOTALL)
    if not client.node:
        compile(code, client.page, "exec")
    assert TEXT in code
    assert "speech.wav" in code
    assert any(address in code for address in (HERE, WYOMING, BRIDGE))
    assert not client.streams or "first sound" in code
    assert client.wrong is None or client.wrong[0] in code


def test_the_last_run_is_of_all_clients_and_went_well() -> None:
    rows = [line.split(" | ") for line in README.splitlines() if line.startswith("| ") and line.count("|") == 6][2:]
    assert [row[0].removeprefix("| ") for row in rows] == [client.page for client in CLIENTS]
    assert all(row[3] == "ok" for row in rows)
