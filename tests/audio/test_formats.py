import subprocess
import sys
from pathlib import Path

import pytest

from tutti.audio import FORMATS, encoder, format_of_file
from tutti.errors import InvalidInput, UnknownFormat

CONTENT_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm;rate=24000;channels=1",
    "mulaw": "audio/PCMU;rate=8000;channels=1",
    "alaw": "audio/PCMA;rate=8000;channels=1",
}


def test_every_format_has_its_content_type():
    assert {name: encoder(name).content_type for name in FORMATS} == CONTENT_TYPES


def test_the_content_type_of_a_raw_stream_has_its_rate():
    assert encoder("pcm", sample_rate=16_000).content_type == "audio/pcm;rate=16000;channels=1"
    assert encoder("mulaw").sample_rate == 8_000


@pytest.mark.parametrize("name", FORMATS)
def test_every_rate_of_the_table_can_be_encoded(name):
    assert [encoder(name, sample_rate=rate).sample_rate for rate in FORMATS[name].sample_rates] == list(
        FORMATS[name].sample_rates
    )


def test_the_error_for_a_misspelt_format_suggests_and_lists_formats():
    with pytest.raises(UnknownFormat) as caught:
        encoder("opuss")
    assert "did you mean opus" in caught.value.message
    assert all(name in caught.value.message for name in FORMATS)
    assert caught.value.param == "format"


def test_format_names_ignore_case():
    assert encoder("WAV").content_type == "audio/wav"


@pytest.mark.parametrize(("name", "rate"), [("opus", 44_100), ("wav", 7), ("mp3", 96_000), ("pcm", 0)])
def test_the_error_for_an_unsupported_rate_lists_the_supported_ones(name, rate):
    with pytest.raises(InvalidInput) as caught:
        encoder(name, sample_rate=rate)
    assert caught.value.param == "sample_rate"
    assert all(str(allowed) in caught.value.message for allowed in FORMATS[name].sample_rates)


FILES = {"a.wav": "wav", "A.MP3": "mp3", "x/y.ogg": "opus", "y.opus": "opus", "y.aac": "aac", "y.flac": "flac"}
RAW_FILES = {"y.pcm": "pcm", "y.raw": "pcm", "y.ulaw": "mulaw", "y.alaw": "alaw", Path("a.b.wav"): "wav"}


@pytest.mark.parametrize(("file", "name"), [*FILES.items(), *RAW_FILES.items()])
def test_a_suffix_names_its_format(file, name):
    assert format_of_file(file).name == name


@pytest.mark.parametrize(
    ("file", "alternative"), [("a.m4a", ".aac"), ("a.wave", ".wav"), ("a", ".mp3"), ("a.txt", ".flac")]
)
def test_the_error_for_an_unknown_suffix_names_an_alternative(file, alternative):
    with pytest.raises(UnknownFormat, match=alternative.replace(".", r"\.")):
        format_of_file(file)


@pytest.mark.process
def test_no_codec_is_loaded_before_it_is_used():
    script = "import sys, tutti.audio as a; a.encoder('wav'); assert not {'av', 'soxr'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
