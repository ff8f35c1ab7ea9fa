"""French words and phrases that English uses, as Merriam-Webster gives their sounds in American English."""

from collections.abc import Sequence
from functools import cache

from tutti.text.g2p.overrides import to_british

# By the spelling with accents: without them some are other words (rose, pate, expose).
_WORDS = {
    "fiancé": "fiˌɑnsˈA", "fiancée": "fiˌɑnsˈA", "cliché": "kliʃˈA", "protégé": "pɹˈOTəʒˌA", "protégée": "pɹˈOTəʒˌA",
    "rosé": "ɹOzˈA", "sauté": "sɔtˈA", "pâté": "pɑtˈA", "passé": "pæsˈA", "blasé": "blɑzˈA", "touché": "tuʃˈA",
    "soufflé": "suflˈA", "risqué": "ɹɪskˈA", "soirée": "swɑɹˈA", "entrée": "ˈɑntɹˌA", "canapé": "kˈænəpˌA",
    "communiqué": "kəmjˌunəkˈA", "consommé": "kˌɑnsəmˈA", "flambé": "flɑmbˈA", "émigré": "ˈɛməɡɹˌA", "outré": "utɹˈA",
    "attaché": "ˌæTəʃˈA", "cachet": "kæʃˈA", "crudité": "kɹˌudɪtˈA", "divorcé": "dəvˌɔɹsˈA", "divorcée": "dəvˌɔɹsˈA",
    "décolleté": "dˌAkɑlətˈA", "frappé": "fɹæpˈA", "glacé": "ɡlæsˈA", "habitué": "həbˈɪʧuˌA", "macramé": "mˈækɹəmˌA",
    "matinée": "mˌætᵊnˈA", "mêlée": "mˈAlˌA", "négligé": "nˌɛɡləʒˈA", "nouveau": "nuvˈO", "papier": "pApjˈA",
    "plissé": "plɪsˈA", "précis": "pɹAsˈi", "recherché": "ɹəʃˌɛɹʃˈA", "retroussé": "ɹətɹusˈA", "roué": "ɹuˈA",
    "soigné": "swɑnjˈA", "tableau": "tæblˈO", "toupée": "tupˈA", "café": "kæfˈA", "brûlée": "bɹulˈA", "née": "nˈA",
    "papier-mâché": "pˌApəɹməʃˈA", "tête-à-tête": "tˌAtətˈAt", "vis-à-vis": "vˌizəvˈi", "pied-à-terre": "pjˌAdətˈɛɹ",
    "mbappé": "əmbˈɑpˌA", "dembélé": "dˌɛmbəlˈA", "pelé": "pˈɛlA", "chloé": "klˈOi", "zoé": "zˈOi", "andré": "ˈɑndɹˌA",
    "macramés": "mˈækɹəmˌAz", "voilà": "vwɑlˈɑ",
}  # fmt: skip
_ENDINGS = {"": "", "s": "z", "'s": "z", "ed": "d", "ing": "ɪŋ"}
# In lower case without accents: the sounds of each word.
_PHRASES = {
    "je ne sais quoi": "ʒə nə sA kwˈɑ", "raison d'etre": "ɹˌAzOn dˈɛtɹə", "bon appetit": "bˌOn ˌæpətˈi",
    "c'est la vie": "sˌA lɑ vˈi", "du jour": "də ʒˈʊɹ", "joie de vivre": "ʒwˌɑ də vˈivɹə", "au revoir": "ˌO ɹəvwˈɑɹ",
    "esprit de corps": "əspɹˌi də kˈɔɹ", "nom de plume": "nˌɑm də plˈum", "nom de guerre": "nˌɑm də ɡˈɛɹ",
    "coup de grace": "kˌu də ɡɹˈɑs", "creme brulee": "kɹˌɛm bɹulˈA", "creme de la creme": "kɹˌɛm də lɑ kɹˈɛm",
    "piece de resistance": "piˌɛs də ɹəzˌistˈɑns", "deja vu": "dˌAʒɑ vˈu", "au jus": "ˌO ʒˈu", "bon mot": "bˌɔn mˈO",
    "bete noire": "bˌɛt nwˈɑɹ", "carte blanche": "kˌɑɹt blˈɑnʃ", "cause celebre": "kˌɔz səlˈɛb",
    "film noir": "fˌɪlm nwˈɑɹ",
    "cordon bleu": "kˌɔɹdɑn blˈu", "double entendre": "dˌubᵊl ɑntˈɑndɹə", "en route": "ɑn ɹˈut", "en masse": "ɑn mˈæs",
    "enfant terrible": "ɑnfˌɑn tɛɹˈiblə", "femme fatale": "fˌɛm fətˈæl", "fait accompli": "fˌAt əkɑmplˈi",
    "haute couture": "ˌOt kutˈʊɹ", "haute cuisine": "ˌOt kwɪzˈin", "menage a trois": "mAnˌɑʒ ɑ twˈɑ",
    "mise en place": "mˌiz ɑn plˈɑs", "mise en scene": "mˌiz ɑn sˈɛn", "noblesse oblige": "nOblˌɛs Oblˈiʒ",
    "objet d'art": "ˌɔbʒA dˈɑɹ", "pain au chocolat": "pˌæn O ʃˌɔkəlˈɑ", "petit four": "pˌɛTi fˈɔɹ",
    "roman a clef": "ɹOmˌɑn ɑ klˈA", "s'il vous plait": "sˌil vu plˈA", "trompe l'oeil": "tɹˌɔmp lˈY",
    "merci beaucoup": "mɛɹsˌi bOkˈu", "mon dieu": "mˌOn djˈu", "mon ami": "mˌOn ɑmˈi", "prix fixe": "pɹˌi fˈɪks",
    "ancien regime": "ɑnsjˌæn ɹAʒˈim", "vive la difference": "vˌiv lɑ dˌɪfəɹˈɑns", "quelle surprise": "kˌɛl səɹpɹˈiz",
}  # fmt: skip
_BY_FIRST: dict[str, list[tuple[list[str], list[str]]]] = {}
for _phrase, _sounds in _PHRASES.items():
    _BY_FIRST.setdefault(_phrase.partition(" ")[0], []).append((_phrase.split(), _sounds.split()))


@cache
def word_sound(token: str, british: bool) -> str | None:
    """Return the sound of a word with its accents; plurals and possessives as well."""
    word = token.lower().replace("’", "'")
    for ending, ending_sound in _ENDINGS.items():
        if word.endswith(ending) and (us := _WORDS.get(word.removesuffix(ending))):
            return (to_british(word, us) if british else us) + ending_sound
    return None


def phrase_sounds(words: Sequence[str], british: bool) -> dict[int, str]:
    """Return the sounds of the words, by their place, that belong to a French phrase."""
    sounds: dict[int, str] = {}
    if _BY_FIRST.keys().isdisjoint(words):
        return sounds
    for place, word in enumerate(words):
        for phrase, each in _BY_FIRST.get(word, ()):
            if list(words[place : place + len(phrase)]) == phrase:
                spoken = (to_british(one, us) if british else us for one, us in zip(phrase, each, strict=True))
                sounds.update(enumerate(spoken, place))
    return sounds
