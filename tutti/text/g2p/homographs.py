"""Homographs whose pronunciation depends on the words around them, not on the part of speech."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HomographRule:
    """A pronunciation of a word, and the context words that select it."""

    us: str
    gb: str
    before: frozenset[str] = frozenset()  # words right before it
    after: frozenset[str] = frozenset()  # words right after it
    near: frozenset[str] = frozenset()  # words anywhere in the sentence
    never_after: frozenset[str] = frozenset()  # words right before it that rule it out


def _rule(us: str, gb: str, before: str = "", after: str = "", near: str = "", never_after: str = "") -> HomographRule:
    return HomographRule(us, gb, *(frozenset(words.split()) for words in (before, after, near, never_after)))


_VERBAL = "to will would can could should may might must i you we they he she it who and let don't didn't"

RULES: dict[str, tuple[HomographRule, ...]] = {
    "lead": (
        _rule(
            "lˈɛd",
            "lˈɛd",
            before="molten heavy white red contain contains containing",
            after="pipe pipes pipework paint paints poisoning acid bullet bullets battery batteries pencil "
            "pencils shot ore "
            "exposure contamination weight weights sheet sheeting solder mine mines oxide crystal glass",
            near="zinc mercury cadmium arsenic toxic copper tin metals",
            never_after=_VERBAL,
        ),
    ),
    "bass": (
        _rule(
            "bˈAs",
            "bˈAs",
            before="double slap upright electric acoustic bowed drum",
            after="guitar guitars guitarist player players line lines drum drums clef note notes solo voice "
            "singer amp boost "
            "part string strings section",
        ),
        _rule("bˈæs", "bˈas", near="lake river pond sea fish fishing fisherman caught catch trout fillet grilled"),
        _rule(
            "bˈAs",
            "bˈAs",
            near="music guitar drum drums treble band song songs jazz speaker speakers subwoofer melody choir "
            "tenor rhythm",
        ),
    ),
    "tear": (
        _rule("tˈɪɹ", "tˈɪə", after="ran rolled fell trickled slid ducts drop drops gas"),
        _rule(
            "tˈɛɹ",
            "tˈɛː",
            near="fabric muscle ligament cloth shirt jeans sleeve meniscus cartilage tendon wear paper sail dress "
            "gown coat",
        ),
        _rule("tˈɪɹ", "tˈɪə", near="eye eyes cheek cheeks"),
        _rule("tˈɛɹ", "tˈɛː", after="apart up down off open it them along away gas-proof in"),
    ),
    "wind": (_rule("wˈInd", "wˈInd", after="up down your", never_after="the a strong cold this that of"),),
    "winds": (
        _rule(
            "wˈɪndz",
            "wˈɪndz",
            before="strong high cold gusty light warm north south east west northwest northeast southwest southeast "
            "northerly southerly easterly westerly prevailing trade gale-force hurricane-force",
            after="of gusting reaching blowing zero five ten fifteen twenty twenty-five thirty forty fifty sixty",
        ),
        _rule("wˈIndz", "wˈIndz", after="up down its through around", never_after="the of"),
    ),
    "wound": (
        _rule("wˈund", "wˈuːnd", before="deep open gunshot stab bullet knife flesh head fatal mortal exit entry old"),
        _rule("wˈWnd", "wˈWnd", after="up down around round through itself", never_after="the a his her my this"),
    ),
    "bow": (
        _rule("bˈO", "bˈQ", near="arrow arrows violin cello ribbon hair archer gift quiver string tied"),
        _rule(
            "bˈW",
            "bˈW",
            before="deep",
            after="down before out politely deeply",
            near="ship boat stern applause curtain audience vessel stage sailors take takes took taking",
            never_after="hair violin red silk",
        ),
    ),
    "row": (_rule("ɹˈW", "ɹˈW", before="blazing furious terrible heated"),),
    "minute": (
        _rule(
            "mInˈut",
            "mInjˈuːt",
            before="most very so extremely",
            after="amount amounts detail details particle particles quantity quantities trace traces difference "
            "differences "
            "fraction scale changes variations organisms quantities dose doses crack cracks hole holes fragment "
            "fragments droplets crystals insects creatures speck specks bubbles grains scratch scratches pieces",
            never_after="last one two three five ten fifteen twenty thirty forty fifty sixty per every",
        ),
    ),
    "resume": (_rule("ɹˈɛzəmˌA", "ɹˈɛzjuːmˌA", before="a my your his her their our the this updated strong good new"),),
    "dove": (_rule("dˈOv", "dˈQv", after="into in down under off for headfirst deep straight"),),
    "lives": (
        _rule(
            "lˈɪvz",
            "lˈɪvz",
            after="in at on with near alone here there next by inside outside abroad among",
            never_after="the their our your my his her of human many lost other people's its several all these those "
            "save "
            "whose saved some",
        ),
    ),
    "live": (
        _rule(
            "lˈIv",
            "lˈIv",
            before="was is are be broadcast streamed performed recorded go went going goes aired",
            after="music show shows stream streams streaming broadcast television tv audience concert performance "
            "wire wires "
            "chat coverage update updates from concerts performances event events album recording recordings animals "
            "ammunition bait data session sessions feed video act acts entertainment demo demos theater theatre sports",
            never_after="i you we they to who people can could will would",
        ),
    ),
    "polish": (_rule("pˈɑlɪʃ", "pˈɒlɪʃ", after="the a an your my this these it them up"),),
    "use": (_rule("jˈus", "jˈuːs", before="of in no the for any"),),
    "close": (
        _rule("klˈOs", "klˈQs", after="to friend friends call range up-to by relative together enough attention"),
    ),
}


def choose(words: Sequence[str], i: int, british: bool) -> str | None:
    """Return the pronunciation that the context of words[i] selects, or None if no rule applies."""
    for rule in RULES.get(words[i], ()):
        left = words[i - 1] if i else ""
        right = words[i + 1] if i + 1 < len(words) else ""
        if left in rule.never_after:
            continue
        if left in rule.before or right in rule.after or not rule.near.isdisjoint(words):
            return rule.gb if british else rule.us
    return None
