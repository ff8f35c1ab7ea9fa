"""`tutti verify`: measure a backend against the official model."""

from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.terminal import print_table, progress_bar
from tutti.errors import InvalidInput
from tutti.settings import load as load_settings


def verify(
    sentences: Annotated[int, typer.Option(min=1, max=560, help="How many sentences to speak.")] = 8,
    vocoder: options.Vocoder = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report; its numbers go beside it as JSON.")] = Path(
        "verify.md"
    ),
    listen: Annotated[
        bool, typer.Option("--listen", help="Download the speech recogniser (73 MB) that counts wrong words.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="With the light vocoder: a folder of recordings, from which a run resumes.")
    ] = None,
    whisper: Annotated[
        Path | None, typer.Option(help="With the light vocoder: a model of faster-whisper, to count words as well.")
    ] = None,
    home: options.Home = None,
    offline: options.Offline = None,
    backend: options.Backend = None,
    device: options.Device = None,
    precision: options.Precision = None,
    compile: options.Compile = None,
    threads: options.Threads = None,
) -> None:
    """Compare a backend with the official model, or the light vocoder with the exact one.

    Speaks the same rows with both, and each row in a batch and alone, or whole and window by window.
    """
    from tutti.model.choice import choose, describe, load
    from tutti.model.light.weights import BASES_PATH, PATH
    from tutti.verify import GATES
    from tutti.verify import verify as measure
    from tutti.verify.held_out import held_out_rows
    from tutti.verify.light import LightVerification, light_checks, light_gates
    from tutti.verify.meters import NO_RECOGNISER, Whisper, installed_meters
    from tutti.verify.recogniser import Moonshine
    from tutti.verify.recordings import Recordings
    from tutti.verify.reference import ReferenceModel
    from tutti.verify.report import HEAD, Report, outcome
    from tutti.verify.sentences import sentences as test_sentences
    from tutti.voices import Voices
    from tutti.weights import FP32_MODEL, MODELS, RECOGNISER, Store, required_files, show_progress, sources

    settings, _ = load_settings(
        {
            "home": home, "offline": offline, "backend": backend, "device": device, "precision": precision,
            "compile": compile, "threads": threads, "vocoder": vocoder,
        }
    )  # fmt: skip
    if not out.parent.is_dir():
        raise InvalidInput(f"cannot write {out}: there is no folder {out.parent}", param="out")
    choice = choose(settings.backend, settings.device, settings.precision, settings.compile, settings.vocoder)
    store = Store(settings.home)
    weights = {choice.weights, "fp32"} if choice.vocoder == "light" else {choice.weights}
    files = [*(file for kind in weights for file in required_files(kind)), *(RECOGNISER if listen else ())]
    with show_progress() as progress:
        store.ensure(files, sources=sources(offline=settings.offline), progress=progress)
    path = store.path(MODELS[choice.weights])
    recogniser = None if store.missing(RECOGNISER) else Moonshine(*map(store.path, RECOGNISER))
    voices = Voices(settings.home / "voices")
    with progress_bar() as show, closing(load(path, choice, settings.threads)) as model:
        if warm_up := getattr(model, "warm_up", None):
            warm_up()
        if choice.vocoder == "light":
            recognisers = {"moonshine": recogniser} if recogniser else {}
            meters = installed_meters({**recognisers, **({"whisper": Whisper(whisper)} if whisper else {})})
            exact = replace(choice, vocoder="exact", precision="fp32")
            official = store.path(MODELS["fp32"])
            recordings = Recordings(keep, f"{FP32_MODEL.sha256} fp32", lambda: load(official, exact, settings.threads))
            name = f"{choice} {sha256(PATH.read_bytes() + BASES_PATH.read_bytes()).hexdigest()}"
            verification = LightVerification(model, name, recordings, voices, meters, keep)
            rows = held_out_rows(sentences)
            checks, notes = light_checks(verification.measure_rows(rows, show), light_gates(choice)), meters.missing
        else:
            spoken = test_sentences(voices, sentences)
            reference = ReferenceModel(path, settings.threads)
            checks = measure(model, reference, spoken, recogniser, GATES[choice.precision], show)
            notes = [] if recogniser else [NO_RECOGNISER]
    report = Report(describe(choice), sentences, checks, notes)
    report.save(out)
    print_table(HEAD, report.rows())
    print(*notes, f"{report.model}: {outcome(report.passed)}; the report is {out}", sep="\n")
    if not report.passed:
        raise typer.Exit(1)
