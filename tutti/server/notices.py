"""What of a text was not spoken as written, for clients: fields of JSON answers and events, and headers."""

import json
from collections.abc import Iterable
from typing import Any

from tutti.speech import Speech

MAX_SYMBOLS = 20  # different symbols that are named; the count has all
MAX_NOTICES = 8
MAX_HEADER = 2000  # characters; proxies refuse long headers


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
