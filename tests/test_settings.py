"""Settings: one value from several sources, typos and bad values refused."""

from pathlib import Path

import pytest

from tutti.errors import InvalidInput
from tutti.settings import ALIASES, Settings, load

NOWHERE = Path("/nonexistent/.env")


def test_an_option_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("TUTTI_VOICE=am_adam\nTUTTI_THREADS=3\nTUTTI_PRECISION=fp32\n")
    chosen, sources = load({"voice": "af_sky", "home": None}, {"TUTTI_VOICE": "bf_emma", "TUTTI_THREADS": "5"}, dotenv)
    assert (chosen.voice, chosen.threads, chosen.precision, chosen.offline) == ("af_sky", 5, "fp32", False)
    assert sources["voice"] == "--voice"
    assert sources["threads"] == "environment (TUTTI_THREADS)"
    assert sources["precision"] == f"{dotenv} (TUTTI_PRECISION)"
    assert sources["offline"] == "default"


@pytest.mark.parametrize(("field", "alias"), [(field, name) for field, names in ALIASES.items() for name in names])
def test_an_older_name_is_accepted_and_the_own_name_wins(field: str, alias: str) -> None:
    samples = {
        "float": ("1.5", "2.5"),
        "int": ("11", "12"),
        "bool": ("True", "False"),
        "str": ("http://old", "http://new"),
    }
    annotation = str(Settings.model_fields[field].annotation)  # perhaps "int | None"
    old, new = next(pair for kind, pair in samples.items() if kind in annotation)
    assert str(getattr(load({}, {alias: old}, NOWHERE)[0], field)) == old
    assert str(getattr(load({}, {alias: old, f"TUTTI_{field.upper()}": new}, NOWHERE)[0], field)) == new


def test_an_empty_variable_counts_as_unset() -> None:
    assert load({}, {"TUTTI_G2P_URL": "", "TUTTI_VOICE": ""}, NOWHERE)[0] == load({}, {}, NOWHERE)[0]


def test_a_typo_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match="did you mean precision"):
        load({}, {"TUTTI_PRECISON": "fp32"}, NOWHERE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THREADS", "0"),
        ("THREADS", "many"),
        ("PRECISION", "fp64"),
        ("BACKEND", "jax"),
        ("DEVICE", "tpu"),
        ("COMPILE", "most"),
        ("G2P_TIMEOUT_S", "-1"),
        ("OFFLINE", "perhaps"),
    ],
)
def test_a_bad_value_names_the_setting_and_its_source(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{name.lower()} from environment \(TUTTI_{name}\).*{value}"):
        load({}, {f"TUTTI_{name}": value}, NOWHERE)


def test_settings_are_frozen_and_refuse_unknown_fields() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().voice = "am_adam"  # type: ignore[misc]
    with pytest.raises(ValueError, match="Extra inputs"):
        Settings(motor=1)  # type: ignore[call-arg]
