"""The body of a dialogue: turns of several voices, which become one text with marks."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from pydantic import AliasChoices, ConfigDict, Field

from tutti.errors import InvalidInput
from tutti.server.aliases import Aliases, resolve_voice
from tutti.server.errors import rename_param
from tutti.server.request import SpeechRequest
from tutti.server.schemas import Options, SpeechBody, VoiceAliases, VoiceChoice, at_most, voice_expression
from tutti.text.language import AUTO
from tutti.text.marks import end_marks, marks_as_text

MAX_TURNS = 10_000
MARKED_VOICE = re.compile(r"[^\[\]\n]{1,120}")  # that fits into a mark


class Turn(Options):
    """What one speaker of a dialogue says; `speaker` and `voice_id` are other names for `voice`."""

    voice: VoiceChoice = Field(validation_alias=AliasChoices("voice", "speaker", "voice_id"))
    text: str


class DialogueBody(SpeechBody):
    """POST /v1/audio/dialogue, and /dev/dialogue."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "cast": {"Anna": "af_heart", "Ben": {"voice": "am_puck", "rate": 0.95}},
                    "turns": [{"speaker": "Anna", "text": "Ready?"}, {"speaker": "Ben", "text": "Yes."}],
                }
            ]
        },
    )

    input: str = Field("", description="has no effect: `turns` has the text")
    turns: Annotated[list[Turn], at_most(MAX_TURNS)] = Field(
        min_length=1, validation_alias=AliasChoices("turns", "inputs"), description="in order; or `inputs`"
    )
    voice_aliases: VoiceAliases | None = Field(
        None,
        validation_alias=AliasChoices("voice_aliases", "cast"),
        description="who speaks with which voice, or {'voice', 'rate'}; or `cast`",
    )
    pause_between_turns: float | None = Field(None, ge=0, le=10, description="seconds of silence; default: 0")

    @property
    def times(self) -> frozenset[str]:
        """Return which times are asked for; those of words name the speaker, too."""
        times = super().times
        return times | {"speaker"} if "word" in times else times

    def ignored_options(self) -> tuple[str, ...]:
        unused = (name for name in ("input", "voice") if getattr(self, name))
        return (*super().ignored_options(), *unused)

    def speech_request(self, aliases: Aliases) -> SpeechRequest:
        """Return the request for the turns as one text with marks, which a request for speech could have, too."""
        ignored = self.ignored_options()
        with rename_param(voice="turns", input="turns"):
            named, _ = self.named_voices(aliases)
            voices = [turn_voice(turn, named) for turn in self.turns]
            changes = {
                "input": self._text([mark for mark, _ in voices]),
                "voice": voices[0][0],
                "allow_voice_tags": None,
            }
            request = SpeechBody.speech_request(self.model_copy(update=changes), aliases)
        notices = dict.fromkeys(notice for _, notices in voices for notice in notices)
        return replace(request, ignored=ignored, notices=(*notices, *request.notices))

    def _text(self, voices: Iterable[str]) -> str:
        """Return a text in which each turn has its voice; marks in a turn end with it."""
        language = self.language or self.lang_code
        mark = f"[lang:{language}]" if language and language != AUTO else ""
        pause_s, parts = self.pause_between_turns or 0.0, []
        for turn, voice in zip(self.turns, voices, strict=True):
            if not turn.text.strip():
                raise InvalidInput("each turn needs a text", param="turns")
            text = "".join(marks_as_text(turn.text)) if self.allow_voice_tags is False else turn.text
            parts.append(f"[voice:{voice}]{mark}\n{text.strip()}{end_marks(text)}")
        return (f" [pause:{pause_s:.3f}s] " if pause_s >= 0.001 else " ").join(parts)


def turn_voice(turn: Turn, aliases: Aliases) -> tuple[str, tuple[str, ...]]:
    """Return the voice of a turn as a mark names it, and notices; aliases stay, since they may have a rate."""
    written = (voice_expression(turn.voice) or "").strip()
    voice, notices = (written, ()) if written.lower() in aliases.voices else resolve_voice(written, aliases)
    if not MARKED_VOICE.fullmatch(voice):
        raise InvalidInput(f"{voice[:40]!r} is no voice for a turn: 1 to 120 characters, no brackets", param="turns")
    return voice, notices
