"""ElevenLabs' pronunciation dictionaries: the stored lexicons of this server under the names of its API."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import Field, ValidationError
from starlette.datastructures import UploadFile

from tutti.additions import Access, Addition
from tutti.errors import InvalidInput, NotYourLexicon, UnknownLexicon
from tutti.lexicons import MAX_AT_ONCE, Change, LexiconContent, StoredLexicon, check_owner
from tutti.server.aliases import Aliases
from tutti.server.body_limit import refuse_compressed
from tutti.server.client_key import connection_key
from tutti.server.errors import NotJson, rename_param
from tutti.server.middleware.auth import ApiKeys
from tutti.server.openapi import Responses, error_responses, only_errors
from tutti.server.schemas import Name, Options, at_most
from tutti.server.service import Service
from tutti.text.ipa import pronunciation, to_ipa
from tutti.text.pls import MEDIA_TYPE, PlsLexicon, read_pls, write_pls
from tutti.text.user_lexicon import MAX_WORDS

MAX_PAGE = 100  # dictionaries in one answer
PLS_FILE: Responses = {200: {"content": {MEDIA_TYPE: {}}}}
FORM = {
    "type": "object",
    "required": ["name", "file"],
    "properties": {
        "name": {"type": "string"},
        "file": {"type": "string", "format": "binary", "description": "a lexicon in W3C's PLS"},
        "description": {"type": "string"},
        "workspace_access": {"type": "string", "description": "admin, editor or viewer: shared with all keys"},
    },
}
FORM_DOCUMENT = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


class Rule(Options):
    """How one word is said: an alias, or phonemes."""

    string_to_replace: str
    type: Literal["alias", "phoneme"]
    alias: str | None = None
    phoneme: str | None = None
    alphabet: Name = "ipa"
    case_sensitive: bool | None = Field(None, description="false: any case; here a lower-case word always is")
    word_boundaries: bool | None = Field(None, description="false: also inside of words")

    def entry(self) -> tuple[str, str]:
        """Return the rule as an entry of a lexicon."""
        said = self.alias if self.type == "alias" else self.phoneme
        if said is None:
            raise InvalidInput(f"the rule of {self.string_to_replace[:40]!r} lacks its {self.type}", param="rules")
        if self.type == "phoneme":
            said = pronunciation(said, self.alphabet)
        word = self.string_to_replace.lower() if self.case_sensitive is False else self.string_to_replace
        if self.word_boundaries is False:
            word = f"/{'(?i)' if word == word.lower() else ''}{re.escape(word)}/"
        return word, said


Rules = Annotated[list[Rule], at_most(MAX_WORDS)]


class RulesBody(Options):
    """POST …/add-rules and …/set-rules."""

    rules: Rules


class NewDictionaryBody(RulesBody):
    """POST /v1/pronunciation-dictionaries/add-from-rules."""

    name: Name
    description: Name | None = None
    workspace_access: Name | None = None


class RemoveRulesBody(Options):
    """POST …/remove-rules."""

    rule_strings: Annotated[list[str], at_most(MAX_WORDS)]


class Locator(Options):
    """A dictionary that a text is spoken with."""

    pronunciation_dictionary_id: Name
    version_id: Name | None = None


Locators = Annotated[list[Locator], at_most(MAX_AT_ONCE)]


class LocatorsBody(Options):
    """The field of a body or a message that names dictionaries."""

    pronunciation_dictionary_locators: Locators | None = None


def located_entries(locators: Sequence[Locator] | None, aliases: Aliases) -> dict[str, str]:
    """Return the entries of the dictionaries of a request; of a version that is not kept, raise."""
    param = "pronunciation_dictionary_locators"
    for locator in locators or ():
        if locator.version_id and aliases.lexicons:
            content = aliases.lexicons.content(locator.pronunciation_dictionary_id, param)
            check_version(locator.pronunciation_dictionary_id, content, locator.version_id, param)
    return aliases.stored_entries([each.pronunciation_dictionary_id for each in locators or ()], param)


def message_entries(message: Mapping[str, Any], aliases: Aliases) -> dict[str, str]:
    """Return the same of a message of a WebSocket."""
    try:
        body = LocatorsBody.model_validate(message)
    except ValidationError as exc:
        form = 'a list such as [{"pronunciation_dictionary_id": "medical"}]'
        raise InvalidInput(
            f"pronunciation_dictionary_locators is {form}", param="pronunciation_dictionary_locators"
        ) from exc
    return located_entries(body.pronunciation_dictionary_locators, aliases)


def elevenlabs_dictionaries(service: Service, keys: ApiKeys) -> APIRouter:
    routes = APIRouter(prefix="/v1/pronunciation-dictionaries", tags=["elevenlabs"])
    stored = service.lexicons

    async def owner(request: Request) -> str:
        return keys.caller(connection_key(request))

    owner_of_request = Depends(owner)

    def store(id: str, change: Change, owner: str, access: Access, *, keeps_access: bool = False) -> StoredLexicon:
        limit = service.settings.max_lexicons
        if limit == 0:
            raise NotYourLexicon("no lexicons may be stored on this server over HTTP (TUTTI_MAX_LEXICONS)")
        with rename_param(lexicon="rules"):
            return stored.put(id, change, Addition(owner, access), limit, keeps_access=keeps_access)

    def add(content: LexiconContent, workspace_access: str | None, owner: str) -> dict[str, Any]:
        id = free_id(content.name, stored.all(owner))
        shared = not keys.needed or workspace_access in ("admin", "editor", "viewer")
        lexicon = store(id, lambda _: content, owner, "shared" if shared else "private")
        return {**metadata(lexicon, content), "version_id": content.version, "version_rules_num": len(content.entries)}

    def change(id: str, change: Change, owner: str) -> dict[str, Any]:
        check_owner(stored.find(id, owner, "pronunciation_dictionary_id"), owner)
        content = stored.content(store(id, change, owner, "private", keeps_access=True))
        return {"id": id, "version_id": content.version, "version_rules_num": len(content.entries)}

    @routes.post("/add-from-rules", responses=error_responses(403))
    async def add_from_rules(body: NewDictionaryBody, owner: str = owner_of_request) -> dict[str, Any]:
        """Store a dictionary of rules."""
        content = LexiconContent(rule_entries(body.rules), body.name, body.description or "")
        return await asyncio.to_thread(add, content, body.workspace_access, owner)

    @routes.post("/add-from-file", responses=error_responses(403), openapi_extra=FORM_DOCUMENT)
    async def add_from_file(request: Request, owner: str = owner_of_request) -> dict[str, Any]:
        """Store a dictionary from a file in W3C's PLS."""
        texts, data = await read_form(request)
        parsed: PlsLexicon = await asyncio.to_thread(read_pls, data)
        content = LexiconContent(parsed.entries, texts["name"], texts.get("description", ""))
        return await asyncio.to_thread(add, content, texts.get("workspace_access"), owner)

    @routes.post("/{dictionary_id}/add-rules", responses=error_responses(403, 404))
    async def add_rules(dictionary_id: str, body: RulesBody, owner: str = owner_of_request) -> dict[str, Any]:
        """Add rules; a word that has one gets the new one."""
        rules = rule_entries(body.rules)
        return await asyncio.to_thread(
            change, dictionary_id, lambda old: with_rules(old, {**old.entries, **rules}), owner
        )

    @routes.post("/{dictionary_id}/set-rules", responses=error_responses(403, 404))
    async def set_rules(dictionary_id: str, body: RulesBody, owner: str = owner_of_request) -> dict[str, Any]:
        """Replace all rules."""
        rules = rule_entries(body.rules)
        return await asyncio.to_thread(change, dictionary_id, lambda old: with_rules(old, rules), owner)

    @routes.post("/{dictionary_id}/remove-rules", responses=error_responses(403, 404))
    async def remove_rules(dictionary_id: str, body: RemoveRulesBody, owner: str = owner_of_request) -> dict[str, Any]:
        """Remove the rules of these words."""
        gone = set(body.rule_strings)

        def without(old: LexiconContent) -> LexiconContent:
            return with_rules(old, {word: said for word, said in old.entries.items() if word not in gone})

        return await asyncio.to_thread(change, dictionary_id, without, owner)

    @routes.get("", responses=only_errors(400))
    async def every(request: Request, cursor: str | None = None, page_size: int = 30) -> dict[str, Any]:
        """The dictionaries that you may use."""
        if not 1 <= page_size <= MAX_PAGE:
            raise InvalidInput(f"page_size is from 1 to {MAX_PAGE}, not {page_size}", param="page_size")
        lexicons = [
            each for id, each in sorted(stored.all(request.state.caller).items()) if cursor is None or id > cursor
        ]
        page, has_more = lexicons[:page_size], len(lexicons) > page_size
        listed = await asyncio.to_thread(lambda: [metadata(each, stored.content(each)) for each in page])
        next_cursor = page[-1].id if has_more else None
        return {"pronunciation_dictionaries": listed, "has_more": has_more, "next_cursor": next_cursor}

    @routes.get("/{dictionary_id}", responses=error_responses(404))
    async def one(request: Request, dictionary_id: str) -> dict[str, Any]:
        """A dictionary with its rules."""
        lexicon = stored.find(dictionary_id, request.state.caller, "dictionary_id")
        content = await asyncio.to_thread(stored.content, lexicon)
        return {**metadata(lexicon, content), "rules": [rule_fields(*entry) for entry in content.entries.items()]}

    @routes.get(
        "/{dictionary_id}/{version_id}/download",
        response_class=Response,
        responses={**PLS_FILE, **error_responses(404)},
    )
    async def download(request: Request, dictionary_id: str, version_id: str) -> Response:
        """The newest version of a dictionary as a PLS file."""
        lexicon = stored.find(dictionary_id, request.state.caller, "dictionary_id")
        content = await asyncio.to_thread(stored.content, lexicon)
        check_version(dictionary_id, content, version_id, "version_id")
        headers = {"content-disposition": f'attachment; filename="{dictionary_id}.pls"'}
        return Response(await asyncio.to_thread(write_pls, content.entries), headers=headers, media_type=MEDIA_TYPE)

    return routes


def rule_entries(rules: Sequence[Rule]) -> dict[str, str]:
    with rename_param(alphabet="rules", phoneme="rules"):
        return dict(rule.entry() for rule in rules)


def with_rules(content: LexiconContent, entries: Mapping[str, str]) -> LexiconContent:
    return LexiconContent(entries, content.name, content.description)


def check_version(id: str, content: LexiconContent, version: str, param: str) -> None:
    """Raise unless this is the version that is kept: the newest."""
    if version != content.version:
        raise UnknownLexicon(
            f"version {version[:40]!r} of {id} is not kept; leave version_id out for the newest, {content.version}",
            param=param,
        )


def free_id(name: str, taken: Mapping[str, object]) -> str:
    """Return an id that is like a name, and that no other dictionary has."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower())[:50].strip("-") or "lexicon"
    return next(id for n in range(1, len(taken) + 2) if (id := stem if n == 1 else f"{stem}-{n}") not in taken)


def metadata(lexicon: StoredLexicon, content: LexiconContent) -> dict[str, Any]:
    return {
        "id": lexicon.id,
        "latest_version_id": content.version,
        "latest_version_rules_num": len(content.entries),
        "name": content.name or lexicon.id,
        "permission_on_resource": "admin",
        "created_by": lexicon.addition.owner or "tutti",
        "creation_time_unix": lexicon.created_s,
        "archived_time_unix": None,
        "description": content.description or None,
    }


def rule_fields(word: str, said: str) -> dict[str, Any]:
    if len(said) > 2 and said[0] == said[-1] == "/":
        return {"type": "phoneme", "string_to_replace": word, "phoneme": to_ipa(said[1:-1]), "alphabet": "ipa"}
    return {"type": "alias", "string_to_replace": word, "alias": said}


async def read_form(request: Request) -> tuple[dict[str, str], bytes]:
    """Return the text fields of a form, and its file."""
    refuse_compressed(request.headers)
    if "multipart/form-data" not in request.headers.get("content-type", ""):
        raise NotJson("send a form with a name and a PLS file: multipart/form-data")
    async with request.form(max_files=1, max_fields=20) as form:
        file = form.get("file")
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        if not texts.get("name", "").strip():
            raise InvalidInput("the dictionary needs a name", param="name")
        if not isinstance(file, UploadFile):
            raise InvalidInput("send a lexicon in W3C's PLS as `file`", param="file")
        return texts, await file.read()
