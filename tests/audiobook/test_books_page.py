"""docs/books.md is true: every kind of book, file, flag and setting on it exists, and none is missing."""

import re
from pathlib import Path

from typer.main import get_command as command

from tutti.audio.tagged import CONTAINERS
from tutti.audiobook.formats import SUFFIXES
from tutti.cli.main import app
from tutti.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/books.md").read_text(encoding="utf-8")


def test_every_kind_of_book_and_of_file_is_on_it() -> None:
    assert all(f"`{suffix}`" in PAGE for suffix in (*SUFFIXES, *CONTAINERS))


def test_its_settings_and_flags_exist() -> None:
    settings = {name.lower() for name in re.findall(r"TUTTI_([A-Z_]+)", PAGE)}
    assert settings >= {"data", "max_job_mb", "max_jobs", "max_jobs_gb"}
    assert settings <= set(Settings.model_fields)
    options = {flag for parameter in command(app).commands["read"].params for flag in parameter.opts}  # type: ignore[attr-defined]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= options
