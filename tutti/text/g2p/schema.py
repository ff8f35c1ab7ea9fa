"""JSON bodies of a G2P service: one sentence in the request, its words in the response."""

from typing import Annotated

from pydantic import BaseModel, Field, StrictInt, StrictStr

MAX_CHARACTERS = 10_000  # of one request


class G2PRequest(BaseModel):
    """A text of plain words; `given` holds the IPA of each U+FFFC by its offset in the text."""

    text: Annotated[StrictStr, Field(max_length=MAX_CHARACTERS)]
    language: StrictStr = "en-us"
    given: dict[Annotated[int, Field(ge=0)], StrictStr] = {}


class G2PWord(BaseModel):
    """A word in Kokoro's symbols; start and end are offsets in the text of the request."""

    phonemes: StrictStr
    start: StrictInt
    end: StrictInt
    before: StrictStr = ""
    after: StrictStr = " "


class G2PResponse(BaseModel):
    """The words, or from a simpler service only the phonemes of the whole text, separated by spaces."""

    words: list[G2PWord] | None = None
    dropped: list[StrictStr] = []
    phonemes: StrictStr | None = None
