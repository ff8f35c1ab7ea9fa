"""What of a request was not spoken as written, or had no effect: fields of JSON answers and events, and headers."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from starlette.datastructures import MutableHeaders

from tutti.speech import Speech

MAX_SYMBOLS = 20  # different symbols that are named; the count has all
MAX_NOTICES = 8
MAX_HEADER = 2000  # characters; proxies refuse long headers
MAX_IGNORED = 20  # ignored options that are named
MAX_OPTION = 80  # characters of the name of one


def notice_fields(speeches: Iterable[Speech]) -> dict[str, Any]:
    """Return `unspoken` (symbols), `unspoken_count` and `notices` (sentences); nothing if all was spoken as written."""
    dropped: list[str] = []
    notices: dict[str, None] = {}
    for speech in speeches:
        dropped += speech.dropped
        notices |= dict.fromkeys(speech.notices)
    fields: dict[str, Any] = {}
    if dropped:
        fields = {"unspoken": list(dict.fromkeys(dropped))[:MAX_SYMBOLS], "unspoken_count": len(dropped)}
    return fields | ({"notices": list(notices)[:MAX_NOTICES]} if notices else {})


def notice_headers(speeches: Iterable[Speech]) -> dict[str, str]:
    """Return the same as headers: JSON in ASCII, since a header cannot hold other letters."""
    fields = notice_fields(speeches)
    names = {"unspoken": "x-unspoken", "unspoken_count": "x-unspoken-count", "notices": "x-notices"}
    headers = {names[name]: json.dumps(value) for name, value in fields.items()}
    return {name: value for name, value in headers.items() if len(value) <= MAX_HEADER}


def add_notice(headers: MutableHeaders, notice: str) -> None:
    """Add a sentence to X-Notices of an answer."""
    notices = json.loads(headers.get("x-notices", "[]"))
    headers["x-notices"] = json.dumps([*notices[: MAX_NOTICES - 1], notice])


def ignored_names(options: Sequence[str]) -> list[str]:
    """Return the names of ignored options as they are shown: not too many, and none too long."""
    names = [name if len(name) <= MAX_OPTION else f"{name[:MAX_OPTION]}..." for name in options[:MAX_IGNORED]]
    return [*names, f"and {len(options) - MAX_IGNORED} more"] if len(options) > MAX_IGNORED else names


def ignored_headers(options: Sequence[str]) -> dict[str, str]:
    """Return them as X-Ignored. A comma and what a header cannot hold are percent-encoded."""
    names = (quote(name, safe=" /", errors="replace")[:MAX_OPTION] for name in ignored_names(options))
    return {"x-ignored": ", ".join(names)} if options else {}
