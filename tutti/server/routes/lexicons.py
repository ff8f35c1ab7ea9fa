"""/v1/lexicons: callers store lexicons by name, as JSON, TSV or W3C's PLS, and speak with them by `lexicon_id`."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import JSONResponse, Response

from tutti.additions import Addition
from tutti.errors import InvalidInput, NotYourLexicon
from tutti.lexicons import Change, LexiconContent, StoredLexicon
from tutti.server.body_limit import refuse_compressed
from tutti.server.client_key import connection_key
from tutti.server.errors import NotJson, rename_param
from tutti.server.job_schemas import Deleted
from tutti.server.middleware.auth import ApiKeys
from tutti.server.openapi import Responses, error_responses
from tutti.server.routes.own_voices import find_access
from tutti.server.service import Service
from tutti.text.pls import MEDIA_TYPE, PlsLexicon, read_pls, write_pls
from tutti.text.user_lexicon import parse_entries

FORMATS = {
    "application/json": "json",
    **dict.fromkeys((MEDIA_TYPE, "application/xml", "text/xml"), "pls"),
    **dict.fromkeys(("text/tab-separated-values", "text/plain"), "tsv"),
}
TABLE = {"type": "object", "additionalProperties": {"type": "string"}, "examples": [{"nginx": "/ˈɛnʤɪnˈɛks/"}]}
DOCUMENT = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": TABLE}}
        | {name: {"schema": {"type": "string"}} for name in FORMATS if name != "application/json"},
    }
}
FILE: Responses = {200: {"content": {"application/json": {}, MEDIA_TYPE: {}}}}


def lexicon_routes(service: Service, keys: ApiKeys) -> APIRouter:
    routes = APIRouter(prefix="/v1/lexicons", tags=["lexicons"])
    stored = service.lexicons

    async def owner(request: Request) -> str:
        """Return whose lexicons the caller may change; raise without a key where one is needed."""
        return keys.caller(connection_key(request))

    owner_of_request = Depends(owner)

    def save(id: str, change: Change, owner: str, access: str | None = None) -> dict[str, Any]:
        """Store a changed lexicon; `access`: none leaves it as it is."""
        limit = service.settings.max_lexicons
        if limit == 0:
            raise NotYourLexicon("no lexicons may be stored on this server over HTTP (TUTTI_MAX_LEXICONS)")
        addition = Addition(owner, find_access(access, has_keys=keys.needed))
        with rename_param(lexicon="entries"):
            return summary(stored.put(id, change, addition, limit, keeps_access=access is None), owner)

    def summary(lexicon: StoredLexicon, owner: str) -> dict[str, Any]:
        return lexicon_fields(lexicon, stored.content(lexicon), owner)

    @routes.get("")
    async def every(request: Request) -> dict[str, Any]:
        """The lexicons that you may use."""
        lexicons, key = stored.all(request.state.caller).values(), request.state.key
        data = await asyncio.to_thread(lambda: [summary(each, key) for each in lexicons])
        return {"object": "list", "data": data}

    @routes.get("/{id}", responses={**FILE, **error_responses(404)})
    async def one(request: Request, id: str, format: str | None = None) -> Response:
        """A lexicon with its entries; with `?format=pls` or `json` as a file."""
        lexicon = stored.find(id, request.state.caller)
        content = await asyncio.to_thread(stored.content, lexicon)
        entries = dict(content.entries)
        if format is None:
            return JSONResponse({**lexicon_fields(lexicon, content, request.state.key), "entries": entries})
        if format not in ("pls", "json"):
            raise InvalidInput(f"format is pls or json, not {format[:40]!r}", param="format")
        headers = {"content-disposition": f'attachment; filename="{id}.{format}"'}
        if format == "json":
            return JSONResponse(entries, headers=headers)
        return Response(await asyncio.to_thread(write_pls, entries), headers=headers, media_type=MEDIA_TYPE)

    @routes.post("/{id}", responses=error_responses(403), openapi_extra=DOCUMENT)
    async def put(request: Request, id: str, access: str | None = None, owner: str = owner_of_request) -> JSONResponse:
        """Store a lexicon, in the place of one of this id that is yours: a table of words, or a PLS or TSV file."""
        refuse_compressed(request.headers)
        body, media_type = await request.body(), request.headers.get("content-type", "application/json")
        with rename_param(lexicon="entries", file="entries"):
            parsed = await asyncio.to_thread(parse_body, body, media_type)
        fields = await asyncio.to_thread(save, id, lambda _: LexiconContent(parsed.entries), owner, access)
        return JSONResponse({**fields, "notices": parsed.notices})

    @routes.post("/{id}/words", responses=error_responses(403, 404))
    async def change(
        id: str,
        words: Annotated[dict[str, str | None], Body(examples=[{"nginx": "/ˈɛnʤɪnˈɛks/", "US": None}])],
        owner: str = owner_of_request,
    ) -> dict[str, Any]:
        """Add, replace and (with null) remove words of a lexicon that is yours; it is made if it is not there."""

        return await asyncio.to_thread(save, id, lambda content: with_words(content, words), owner)

    @routes.delete("/{id}", responses=error_responses(403, 404))
    async def delete(id: str, owner: str = owner_of_request) -> Deleted:
        """Delete a lexicon that you have stored."""
        await asyncio.to_thread(stored.remove, id, owner)
        return Deleted(id=id)

    return routes


def with_words(content: LexiconContent, words: dict[str, str | None]) -> LexiconContent:
    """Return a lexicon with these words, and without those that are null."""
    entries = {word: said for word, said in {**content.entries, **words}.items() if said is not None}
    return LexiconContent(entries, content.name, content.description)


def parse_body(body: bytes, media_type: str) -> PlsLexicon:
    """Return the entries of a file in any of the formats, by its media type."""
    format = FORMATS.get(media_type.partition(";")[0].strip().lower())
    if format is None:
        raise NotJson(f"send the lexicon as {', '.join(FORMATS)}; {media_type[:60]!r} is none of these")
    if format == "pls":
        return read_pls(body)
    try:
        return PlsLexicon(dict(parse_entries(body.decode("utf-8-sig"), format)))
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"the lexicon cannot be read as {format}: {exc}", param="lexicon") from exc


def lexicon_fields(lexicon: StoredLexicon, content: LexiconContent, owner: str) -> dict[str, Any]:
    return {
        "object": "lexicon",
        "id": lexicon.id,
        "words": len(content.entries),
        "version": content.version,
        "access": lexicon.addition.access,
        "yours": lexicon.addition.owner == owner,
        "created_at": lexicon.created_s,
    }
