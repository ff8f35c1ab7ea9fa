"""Compare the light vocoder, or nano, with the exact one on rows that no training has seen.

python -m training.verify --sentences 324 --keep recordings     hours on two cores; with --keep, a run resumes
python -m training.verify --listen                              also counts wrong words: downloads a recogniser (73 MB)
python -m training.verify --text                                the light text encoder instead, with the light vocoder
python -m training.verify --vocoder nano                        nano instead of light

DNSMOS and the comparison of speakers need the `verify` extra; the report says what was left out.
"""

from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

import typer

from training.verify.held_out import held_out_rows
from training.verify.light import LightVerification, light_checks, light_gates
from training.verify.meters import Whisper, installed_meters
from training.verify.recordings import Recordings
from training.verify.text import TextGates, TextVerification, text_checks
from tutti.cli import options
from tutti.cli.terminal import print_table, progress_bar
from tutti.errors import InvalidInput, TuttiError
from tutti.model.choice import choose, describe, load
from tutti.model.light.weights import BASES_PATH, NANO_PATH, PATH, RANGES_PATH, TEXT_PATH
from tutti.verify.recogniser import Moonshine
from tutti.verify.report import HEAD, Report, outcome
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, MODELS, RECOGNISER, Store, required_files, show_progress, sources


@options.with_groups
def verify(
    *,
    sentences: Annotated[int, typer.Option(min=1, help="How many rows to speak.")] = 8,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report; its numbers go beside it as JSON.")] = Path(
        "verify.md"
    ),
    listen: Annotated[
        bool, typer.Option("--listen", help="Download the speech recogniser (73 MB) that counts wrong words.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="A folder of recordings, from which a run resumes.")] = None,
    whisper: Annotated[
        Path | None, typer.Option(help="A model of faster-whisper, to count words with it, too.")
    ] = None,
    vocoder: Annotated[Literal["light", "nano"], typer.Option(help="What is compared with the exact one.")] = "light",
    text: Annotated[bool, typer.Option("--text", help="Compare the text encoders instead of the vocoders.")] = False,
    one: options.OneModel,
) -> None:
    """Speak the same rows with both vocoders, and each row whole and window by window; or with both text encoders."""
    settings = one.settings()
    if not out.parent.is_dir():
        raise InvalidInput(f"cannot write {out}: there is no folder {out.parent}", param="out")
    choice = choose(settings.backend, settings.device, settings.precision, settings.compile, vocoder, "exact")
    store = Store(settings.home)
    weights = {choice.weights, "fp32"}
    official_files = [*(file for kind in weights for file in required_files(kind)), *(RECOGNISER if listen else ())]
    with show_progress() as progress:
        store.ensure(official_files, sources=sources(offline=settings.offline), progress=progress)
    recognisers = {} if store.missing(RECOGNISER) else {"moonshine": Moonshine(*map(store.path, RECOGNISER))}
    meters = installed_meters(recognisers | ({"whisper": Whisper(whisper)} if whisper else {}))
    voices = Voices(settings.home / "voices")
    own = store.path(MODELS[choice.weights])
    files = (RANGES_PATH, *((NANO_PATH,) if vocoder == "nano" else (PATH, BASES_PATH)))
    name = f"{choice} {sha256(b''.join(file.read_bytes() for file in files)).hexdigest()}"
    if text:
        judged = replace(choice, text="light")
        name += sha256(TEXT_PATH.read_bytes()).hexdigest()
        with (
            progress_bar() as show,
            closing(load(own, choice, settings.threads)) as model,
            closing(load(own, judged, settings.threads, model)) as light,
        ):
            of_texts = TextVerification(light, model, name, voices, meters, keep)
            checks = text_checks(of_texts.measure_rows(held_out_rows(sentences), show), TextGates())
    else:
        judged = choice
        exact = replace(choice, vocoder="exact", precision="fp32")
        official = store.path(MODELS["fp32"])
        recordings = Recordings(keep, f"{FP32_MODEL.sha256} fp32", lambda: load(official, exact, settings.threads))
        with progress_bar() as show, closing(recordings), closing(load(own, choice, settings.threads)) as model:
            model.warm_up()
            verification = LightVerification(model, name, recordings, voices, meters, keep)
            checks = light_checks(verification.measure_rows(held_out_rows(sentences), show), light_gates(choice))
    report = Report(describe(judged), sentences, checks, meters.missing)
    report.save(out)
    print_table(HEAD, report.rows())
    print(*report.notes, f"{report.model}: {outcome(report.passed)}; the report is {out}", sep="\n")
    if not report.passed:
        raise typer.Exit(1)


def main() -> None:
    try:
        typer.run(verify)
    except TuttiError as exc:
        raise SystemExit(f"error: {exc}") from exc


if __name__ == "__main__":
    main()
