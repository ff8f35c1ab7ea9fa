"""Settings: one value from several sources, typos and bad values refused."""

import re
from pathlib import Path

import pytest

from tutti.errors import InvalidInput
from tutti.settings import ALIASES, AMBIGUOUS, PRESETS, Settings, load, notes
from tutti.text.chunker import ChunkSizes

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


def test_variables_of_the_client_are_no_typos_but_its_key_alone_may_be_that_of_a_server() -> None:
    load({}, {"TUTTI_URL": "http://127.0.0.1:8880"}, NOWHERE)
    load({}, {"TUTTI_API_KEYS": "one,two", "TUTTI_API_KEY": "one"}, NOWHERE)
    with pytest.raises(InvalidInput, match="did you mean api_keys"):
        load({}, {"TUTTI_API_KEY": "one"}, NOWHERE)


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


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_sets_each_of_its_values_and_a_value_of_ones_own_wins(preset: str) -> None:
    chosen, sources = load({"preset": preset}, {}, NOWHERE)
    changed = {name: value for name, value in chosen if value != getattr(Settings(), name)}
    assert changed == {"preset": preset, **PRESETS[preset]}
    for name, value in PRESETS[preset].items():
        assert sources[name] == f"preset {preset}"
        own = str(int(value) + 1) if not isinstance(value, bool) else str(not value)
        assert str(getattr(load({}, {"TUTTI_PRESET": preset, f"TUTTI_{name.upper()}": own}, NOWHERE)[0], name)) in (
            own,
            f"{own}.0",
        )


def test_the_page_on_tuning_lists_every_value_of_every_preset() -> None:
    page = Path(__file__).parent.parent / "docs/tuning.md"
    rows = re.findall(r"^\| `(\w+)` \| `TUTTI_(\w+)=(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {(preset, name.lower(), value) for preset, name, value in rows if preset in PRESETS}
    assert listed == {
        (preset, name, str(value).lower()) for preset, values in PRESETS.items() for name, value in values.items()
    }


@pytest.mark.parametrize(
    ("beside", "field"),
    [
        ({}, "max_request_items"),
        ({"KOKORO_MAX_BATCH_SIZE": "8"}, "max_request_items"),
        ({"ENABLE_KOKORO_BATCHING": "true", "BATCH_TIMEOUT_MS": "500"}, "max_request_items"),
        ({"ENABLE_BATCHING": "true"}, "max_batch_size"),
        ({"BATCH_TIMEOUT_MS": "500"}, "max_batch_size"),
        ({"MAX_BATCH_TEXT_LENGTH": "2000"}, "max_batch_size"),
    ],
)
def test_max_batch_size_means_what_its_neighbours_say(beside: dict[str, str], field: str) -> None:
    chosen, sources = load({}, {AMBIGUOUS: "7", **beside}, NOWHERE)
    read_as = {name for name in ("max_batch_size", "max_request_items") if sources[name].endswith(f"({AMBIGUOUS})")}
    assert read_as == {field}
    assert getattr(chosen, field) == 7
    assert [note for note in notes(chosen, sources) if f"read as TUTTI_{field.upper()};" in note]


@pytest.mark.parametrize(
    ("variables", "named", "cause"),
    [
        ({"KOKORO_MAX_WAIT_MS": "100"}, "KOKORO_MAX_WAIT_MS", "the policy is deadline"),
        ({"BATCH_TIMEOUT_MS": "100"}, "BATCH_TIMEOUT_MS", "window and bypass"),
        ({"KOKORO_MIN_WAIT_MS": "1", "TUTTI_POLICY": "fifo"}, "KOKORO_MIN_WAIT_MS", "the policy is fifo"),
        ({"TUTTI_EARLY_FIRE": "0.5"}, "TUTTI_EARLY_FIRE", "window and bypass"),
        ({"STREAMING_BYPASS_CHUNKS": "3"}, "STREAMING_BYPASS_CHUNKS", "policy bypass"),
        ({"STREAMING_BYPASS_CHUNKS": "3", "TUTTI_POLICY": "window"}, "STREAMING_BYPASS_CHUNKS", "policy is window"),
        ({"KOKORO_MAX_BATCH_SIZE": "8", "ENABLE_KOKORO_BATCHING": "false"}, "KOKORO_MAX_BATCH_SIZE", "batching is off"),
        ({"G2P_TIMEOUT": "30"}, "G2P_TIMEOUT", "URL"),
        ({"TUTTI_MODELS": "kokoro", "TUTTI_EXTRA_PRECISIONS": "int8"}, "TUTTI_EXTRA_PRECISIONS", "TUTTI_MODELS"),
    ],
)
def test_a_value_without_effect_is_noted_by_the_name_it_was_given(
    variables: dict[str, str], named: str, cause: str
) -> None:
    (note,) = notes(*load({}, variables, NOWHERE))
    assert note.startswith(f"{named} has no effect")
    assert cause in note


@pytest.mark.parametrize("policy", ["window", "bypass"])
def test_values_that_have_an_effect_are_not_noted(policy: str) -> None:
    waits = {"KOKORO_MAX_WAIT_MS": "100", "KOKORO_MIN_WAIT_MS": "1", "TUTTI_EARLY_FIRE": "0.5"}
    bypass = {"STREAMING_BYPASS_CHUNKS": "3"} if policy == "bypass" else {}
    others = {"KOKORO_MAX_BATCH_SIZE": "8", "MAX_QUEUE_SIZE": "5", "TUTTI_PRESET": "latency"}
    assert notes(*load({"policy": policy}, {**waits, **bypass, **others}, NOWHERE)) == []
    assert notes(*load({"max_wait_ms": "9"}, {}, NOWHERE))[0].startswith("--max-wait-ms has no effect")


EXAMPLE = Path(__file__).parent.parent / ".env.example"


def test_the_example_file_has_every_batching_setting_with_its_default_and_its_older_names(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    lines = re.findall(r"^#(TUTTI_\w+)=(.*)$", text, re.MULTILINE)
    named = [name.removeprefix("TUTTI_").lower() for name, _ in lines]
    fields = list(Settings.model_fields)
    batching = fields[fields.index("preset") : fields.index("host")]
    assert len(named) == len(set(named))
    assert {*batching, *ALIASES} <= set(named)
    # Uncommented as a whole, it changes nothing.
    dotenv = tmp_path / ".env"
    dotenv.write_text("\n".join(f"{name}={value}" for name, value in lines))
    chosen, sources = load({}, {}, dotenv)
    assert chosen == load({}, {}, NOWHERE)[0]
    unset = {"preset", *(name for name, (_, value) in zip(named, lines, strict=True) if not value)}
    assert {name for name in named if sources[name] == "default"} == unset - {"preset"}
    # The older names stand above the name that they are read as.
    for field, older in ALIASES.items():
        comment = text.partition(f"\n#TUTTI_{field.upper()}=")[0].rpartition("\n\n")[2]
        assert all(re.search(rf"\b{name}\b", comment) for name in older), field


def test_the_default_sizes_of_chunks_are_those_of_the_chunker() -> None:
    default = Settings()
    assert ChunkSizes(default.min_chunk_tokens, default.max_chunk_tokens) == ChunkSizes()


@pytest.mark.parametrize("value", ["", " ", ","])
def test_keys_that_are_given_but_empty_are_refused_with_the_cure(value: str) -> None:
    """As by `--api-keys "$KEY"` where KEY is not set: the server would be open to all."""
    with pytest.raises(InvalidInput, match=r"--api-keys has no key in it.*KEY=\$\(openssl rand -hex 16\)"):
        load({"api_keys": value}, {}, NOWHERE)


def test_an_empty_variable_for_keys_counts_as_unset_but_one_with_no_key_in_it_is_refused() -> None:
    """The compose file passes an empty one; then the server says at the start that it is open."""
    assert load({}, {"TUTTI_API_KEYS": ""}, NOWHERE)[0].api_keys == ()
    with pytest.raises(InvalidInput, match=r"environment \(TUTTI_API_KEYS\) has no key"):
        load({}, {"TUTTI_API_KEYS": ","}, NOWHERE)


PAGE = (Path(__file__).parent.parent / "docs/tuning.md").read_text("utf-8")
SAME = {  # older names whose documented default is ours
    "ENABLE_KOKORO_BATCHING", "ENABLE_BATCHING", "KOKORO_MAX_WAIT_MS", "MAX_QUEUE_SIZE", "STREAMING_BYPASS_CHUNKS",
    "MIN_TOKENS_PER_CHUNK", "PORT",
}  # fmt: skip


def test_the_page_on_tuning_names_every_default_that_differs_from_the_documented_one() -> None:
    """Of each older name, ours as it is in the settings."""
    table = PAGE[PAGE.index("## Other defaults") :].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+? \| `TUTTI_(\w+)`: (.+?) \| .+ \|$", table, re.MULTILINE)
    defaults = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    for _, field, ours in rows:
        default = defaults[field.lower()]
        shown = "none" if default is None else f"{default:g}" if isinstance(default, float) else str(default)
        assert ours.split()[0].rstrip(",;") == shown, field
    named = {name for names, _, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert named | SAME >= {name for names in ALIASES.values() for name in names}
    assert not named & SAME
