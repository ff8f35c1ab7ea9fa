"""What travels between tutti and a G2P service: one sentence there, its words back."""

from typing import Annotated

from pydantic import BaseModel, Field, StrictInt, StrictStr

MAX_CHARACTERS = 10_000


class Ask(BaseModel):
    """A text of plain words; `given` holds IPA by the offset of U+FFFC in the text."""

    text: Annotated[StrictStr, Field(max_length=MAX_CHARACTERS)]
    language: StrictStr = "en-us"
    given: dict[Annotated[int, Field(ge=0)], StrictStr] = {}


class SaidWord(BaseModel):
    """A word in Kokoro's symbols; start and end are offsets into the text that was sent."""

    phonemes: StrictStr
    start: StrictInt
    end: StrictInt
    before: StrictStr = ""
    after: StrictStr = " "


class Answer(BaseModel):
    """The words, or from a simpler service only the phonemes of the whole text."""

    words: list[SaidWord] | None = None
    dropped: list[StrictStr] = []
    phonemes: StrictStr | None = None
