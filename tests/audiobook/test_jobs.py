"""Stored jobs are read back, also those of older versions."""

import json

from tutti.audiobook.jobs import AudiobookJob
from tutti.speech import SpeechParams

JOB = AudiobookJob(
    "0c5f", "key-1", "key-1", 1763200000.5, "book.epub", None, ".m4b", "srt", False,
    SpeechParams("narrator", speed=1.25, lexicon={"tutti": "tˈuti"}, voice_names={"narrator": "am_adam"}),
    "The Third Winter", "Ada Example", 3, 1234, ("a page is missing",), "paused", ("storage_full", "no room left"),
)  # fmt: skip


def test_a_job_is_read_back_as_it_was_stored() -> None:
    assert AudiobookJob.from_json(JOB.to_json()) == JOB


def test_a_job_of_the_version_with_voicing_is_read() -> None:
    fields = json.loads(JOB.to_json())
    fields["voicing"] = fields.pop("params")
    fields["voicing"]["names"] = fields["voicing"].pop("voice_names")
    for later in ("code_blocks", "normalization", "pcm_volume", "with_words", "voice_rates", "pauses"):
        del fields["voicing"][later]
    assert set(fields["voicing"]) == {
        "voice", "style", "speed", "pitch", "pitch_range", "energy", "emotion", "language", "lexicon", "names", "seed",
        "model",
    }  # fmt: skip
    assert AudiobookJob.from_json(json.dumps(fields)) == JOB
