"""Tags of other services in the text of a language model, `[excited]`, `<laugh>`, written as marks or left out.

Brackets are a tag only if every word in them is known; all others are text.
"""

import re
from collections.abc import Mapping


def _by_word(words: Mapping[str, str]) -> dict[str, str]:
    """Turn a table of words for each value into one of values for each word."""
    return {word: value for value, written in words.items() for word in written.split()}


# The preset for each word that says how something is spoken.
FEELINGS = _by_word(
    {
        "neutral": "neutral neutrally",
        "calm": """
            calm calmly relaxed soothing soothingly reassuring reassuringly peaceful serene tired sleepy empathetic
            sympathetic patient steady
        """,
        "happy": """
            happy happily cheerful cheerfully joyful joyfully friendly playful playfully delighted amused grateful
            upbeat optimistic hopeful
        """,
        "excited": """
            excited excitedly enthusiastic enthusiastically energetic elated euphoric triumphant amazed surprised
            thrilled shouts shouting shouted yells yelling screams screaming
        """,
        "sad": """
            sad sadly sorrowful sorrowfully melancholic disappointed depressed dejected mournful mournfully crying
            apologetic resigned
        """,
        "angry": "angry angrily furious furiously frustrated annoyed outraged irritated agitated",
        "serious": """
            serious seriously stern sternly solemn solemnly dramatic dramatically authoritative professional
            determined confident
        """,
        "gentle": """
            gentle gently tender tenderly soft softly quietly hushed warm warmly affectionate whisper whispers
            whispering whispered
        """,
    }
)
NEAREST = ("whisper", "shout", "yell", "scream", "cry")  # words that begin so are followed only from afar
# What Kokoro can neither speak as a sound nor follow.
UNKNOWN = _by_word(
    {
        "sound": """
            laugh laughs laughing laughter chuckle chuckles chuckling giggle giggles giggling sigh sighs sighing
            gasp gasps gasping cough coughs coughing sniff sniffs sniffle sniffles sob sobs sobbing groan groans
            groaning yawn yawns yawning snort snorts exhale exhales inhale inhales breathes gulp gulps swallows hums
            humming whistles whistling sings singing applause clapping claps gunshot explosion stammers stammering
            mutters muttering
        """,
        "manner": """
            sarcastic sarcastically sarcasm ironic curious curiously mischievous mischievously nervous nervously
            anxious scared fearful confused hesitant hesitantly thoughtful thoughtfully robotic disgusted bored
            proud
        """,
    }
)
FILLERS = _by_word(
    {
        "": """
            a an in to with and very slightly extremely bit little deep deeply heavily loudly hard harder lightly
            briefly tone voice speaking speaks says self himself herself then more
        """,
    }
)
PHRASES = re.compile(r"clears? (?:his |her |the )?throat|catches breath|(?:takes a )?deep breath|(?:\w+ ){1,3}accent")
PAUSES_S = {"pause": 0.5, "pauses": 0.5, "short pause": 0.3, "medium pause": 0.5, "long pause": 1.0, "beat": 0.5}
RATES = {
    **dict.fromkeys(("quickly", "rapidly", "rushed", "hurriedly", "speeds up", "extremely fast", "faster"), 1.25),
    **dict.fromkeys(("slowly", "drawn out", "deliberately", "slows down", "extremely slow", "slower"), 0.75),
}
IN_SSML = ("emphasis", "prosody", "voice", "say-as", "phoneme", "lang", "speak")  # and in no HTML
_SOUND_TAGS = "laugh|laughs|laughter|chuckle|giggle|sigh|cough|sniffle|sniff|groan|yawn|gasp|breath|clear_throat"
TAG = re.compile(
    r"(?<![\w)\[!])\[(?P<words>[A-Za-z][A-Za-z',_ -]{1,60})\](?![(:\]])"
    r"|<spell>(?P<spelled>[^<>]{1,200})</spell>"
    rf"|<(?P<close>/)?(?P<name>emotion|speed|volume|whisper|{'|'.join(IN_SSML)}|{_SOUND_TAGS})"
    r"(?P<attributes>(?:\s[^<>]{0,300})?)/?>",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\b(?:value|ratio)\s*=\s*[\"']?\s*([\w. -]{1,40}?)\s*[\"'/]", re.ASCII)
_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,4})?", re.ASCII)


def tag_mark(tag: re.Match[str]) -> str | None:
    """Return the mark for a match of TAG, "" if it is left out; None if it is text."""
    if tag["words"]:
        return _mark_of_words(tag["words"])
    if tag["spelled"]:
        return " ".join(char for char in tag["spelled"].upper() if not char.isspace())
    match tag["name"].lower():
        case "emotion" | "whisper" as name:
            preset = "gentle" if name == "whisper" else FEELINGS.get(_value(tag).lower(), "")
            return "[/emotion]" if tag["close"] else f"[emotion:{preset}]" if preset else ""
        case "speed" | "volume" as name:
            mark, ratio = {"speed": "rate"}.get(name, name), _value(tag)
            if tag["close"]:
                return f"[/{mark}]"
            return f"[{mark}:{min(max(float(ratio), 0.25), 4.0):g}]" if _NUMBER.fullmatch(ratio) else ""
    return ""


def tags_as_marks(text: str) -> str:
    """Return a text in which every tag is a mark."""
    return TAG.sub(lambda tag: tag[0] if (mark := tag_mark(tag)) is None else mark, text)


def tag_notices(text: str) -> tuple[str, ...]:
    """Say once of each tag what is left out, and what is followed only from afar."""
    if "[" not in text and "<" not in text:
        return ()
    notices: dict[str, None] = {}
    for tag in TAG.finditer(text):
        if (mark := tag_mark(tag)) is None or tag["close"] or tag["spelled"]:
            continue
        shown = tag[0][:60]
        if not mark:
            inside = " outside of <speak>" if (tag["name"] or "").lower() in IN_SSML else ""
            notices[f"{shown} is left out: Kokoro cannot follow it{inside}"] = None
        elif shown[1:].lower().startswith(NEAREST):
            notices[f"{shown} is spoken by the preset {mark[9:-1]}, which is the nearest"] = None
    return tuple(notices)


def _mark_of_words(written: str) -> str | None:
    phrase = " ".join(re.split(r"[\s,_-]+", written.lower().strip()))
    if phrase in PAUSES_S:
        return f"[pause:{PAUSES_S[phrase]:g}s]"
    if phrase in RATES:
        return f"[rate:{RATES[phrase]:g}]"
    words = phrase.split()
    in_tables = [word for word in words if word in FEELINGS or word in UNKNOWN]
    if not PHRASES.fullmatch(phrase) and (not in_tables or any(word not in (*in_tables, *FILLERS) for word in words)):
        return None
    preset = FEELINGS.get(in_tables[0]) if in_tables else None  # [laughs softly] is a laugh
    return f"[emotion:{preset}]" if preset else ""


def _value(tag: re.Match[str]) -> str:
    value = _VALUE.search(f"{tag['attributes']}/")
    return value[1] if value else ""
