"""docs/books.md is complete: every book format, file suffix, option and setting on it exists, none is missing."""

import re
from pathlib import Path

from typer.main import get_command as command

from tutti.audio.tagged import CONTAINERS
from tutti.audiobook.formats import READERS
from tutti.cli.main import app
from tutti.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/books.md").read_text(encoding="utf-8")


def test_every_book_format_and_file_suffix_is_listed() -> None:
    assert all(f"`{suffix}`" in PAGE for suffix in (*READERS, *CONTAINERS))


def test_its_settings_and_options_exist() -> None:
    settings = {name.lower() for name in re.findall(r"TUTTI_([A-Z_]+)", PAGE)}
    assert settings >= {"data", "max_job_mb", "max_jobs", "max_jobs_gb"}
    assert settings <= set(Settings.model_fields)
    options = {flag for parameter in command(app).commands["read"].params for flag in parameter.opts}  # type: ignore[attr-defined]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= options
