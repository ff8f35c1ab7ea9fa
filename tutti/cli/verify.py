"""`tutti verify`: measure a backend against the official model."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.terminal import print_table, progress_bar
from tutti.errors import InvalidInput

LIGHT = "how far it is from the exact one is measured by `python -m training.verify --vocoder {}` in the repository"


@options.with_groups
def verify(
    *,
    sentences: Annotated[int, typer.Option(min=1, max=560, help="How many sentences to speak.")] = 8,
    vocoder: options.Vocoder = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report; its numbers go beside it as JSON.")] = Path(
        "verify.md"
    ),
    listen: Annotated[
        bool, typer.Option("--listen", help="Download the speech recogniser (73 MB) that counts wrong words.")
    ] = False,
    one: options.OneModel,
) -> None:
    """Compare a backend with the official model: the same rows with both, and each row in a batch and alone."""
    from tutti.model.choice import choose, describe, load
    from tutti.verify import GATES
    from tutti.verify import verify as measure
    from tutti.verify.recogniser import NO_RECOGNISER, Moonshine
    from tutti.verify.reference import ReferenceModel
    from tutti.verify.report import HEAD, Report, outcome
    from tutti.verify.sentences import sentences as test_sentences
    from tutti.voices import Voices
    from tutti.weights import MODELS, RECOGNISER, Store, required_files, show_progress, sources

    if vocoder in ("light", "nano"):
        raise InvalidInput(f"{vocoder} differs from the official vocoder; {LIGHT.format(vocoder)}", param="vocoder")
    settings = one.settings()
    if not out.parent.is_dir():
        raise InvalidInput(f"cannot write {out}: there is no folder {out.parent}", param="out")
    choice = choose(settings.backend, settings.device, settings.precision, settings.compile, "exact")
    store = Store(settings.home)
    files = [*required_files(choice.weights), *(RECOGNISER if listen else ())]
    with show_progress() as progress:
        store.ensure(files, sources=sources(offline=settings.offline), progress=progress)
    path = store.path(MODELS[choice.weights])
    recogniser = None if store.missing(RECOGNISER) else Moonshine(*map(store.path, RECOGNISER))
    with progress_bar() as show, closing(load(path, choice, settings.threads)) as model:
        model.warm_up()
        spoken = test_sentences(Voices(settings.home / "voices"), sentences)
        reference = ReferenceModel(path, settings.threads)
        checks = measure(model, reference, spoken, recogniser, GATES[choice.precision], show)
    notes = [] if recogniser else [NO_RECOGNISER]
    own = choose(settings.backend, settings.device, settings.precision, vocoder=vocoder or settings.vocoder).vocoder
    if own != "exact":
        notes.append(f"With the exact vocoder. This machine speaks with the {own} one by default; {LIGHT.format(own)}.")
    report = Report(describe(choice), sentences, checks, notes)
    report.save(out)
    print_table(HEAD, report.rows())
    print(*notes, f"{report.model}: {outcome(report.passed)}; the report is {out}", sep="\n")
    if not report.passed:
        raise typer.Exit(1)
