"""`tutti bulk`: a table of texts into shards of audio with an index."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tutti.cli import options
from tutti.cli.on_ray import without_ray
from tutti.cli.terminal import ShowProgress, counted, progress_bar
from tutti.errors import InvalidInput
from tutti.settings import Settings

if TYPE_CHECKING:
    from tutti.bulk.output import OutputFolder, RunSummary
    from tutti.bulk.run import TableSize
    from tutti.bulk.shards import Shard
    from tutti.bulk.speaking import BulkOptions
    from tutti.voices import Voices

SOME_FAILED = 5  # exit code: all is done, but some rows are failed in the index
CPU_ROWS = 4  # rows of a batch for each core; larger balances the cores better, and the bar moves less often
MIN_ROWS = 8  # of a batch on a processor
CUDA_ROWS = 64  # the most in one shape of the model
MAX_G2P = 8  # processes that prepare texts for a GPU; on a processor a thread is enough


@options.with_groups
def bulk(
    table: Annotated[Path, typer.Argument(help="A .jsonl, .csv or .parquet file, a text in each row.")],
    out: Annotated[Path, typer.Argument(help="Folder for the shards and the index; resumes a run that is there.")],
    *,
    manner: options.Manner,
    format: Annotated[str, typer.Option("--format", "-f", help="Audio format: flac wav mp3 opus aac …")] = "flac",
    sample_rate: Annotated[int | None, typer.Option(help="Samples a second; default: 24000.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Word times in the JSON of each row.")] = False,
    other_columns: Annotated[
        Literal["refuse", "keep", "ignore"], typer.Option(help="Columns without a meaning here; keep: in the JSON.")
    ] = "refuse",
    max_text: Annotated[int, typer.Option(min=1, help="Characters; a row with more fails.")] = 20_000,
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows in a shard; a killed run repeats at most two.")] = 512,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Rows in a batch; default: by the device.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", help="Use Ray: 'local' for this machine, or the address of a cluster.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=1, help="With --ray: how many; default: every GPU, or one.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="TUTTI_API_KEY", help="A key of the server, to use its private voices.")
    ] = None,
    means: options.Means,
) -> None:
    """Speak every row of a table: [bold]tutti bulk texts.jsonl out[/]

    Columns: text, id, voice, speed, language … as the options; a cell overrides the option. A bad row is failed in the
    index and does not stop the rest (exit code 5). After a crash, run the same command again to resume.
    """
    from filelock import FileLock, Timeout

    from tutti.additions import key_id
    from tutti.audio.formats import find_format
    from tutti.bulk.run import BulkRun, check_table, open_folder, stored_batch_rows
    from tutti.bulk.speaking import BulkOptions
    from tutti.bulk.table import check_pyarrow, digest
    from tutti.engine.checkpoints import open_voices
    from tutti.engine.request import check_params
    from tutti.files import write_error
    from tutti.text.options import parse_pauses

    check_pyarrow()
    settings, params = means.speaking(manner)
    if devices is not None and ray is None:
        raise InvalidInput("--devices is for --ray; without it every CUDA device of this machine is used")
    find_format(format).rate(sample_rate)
    pauses = parse_pauses(settings.pauses)
    params = replace(params, pcm_volume=1.0, with_words=words, code_blocks=settings.code_blocks, pauses=pauses)
    caller = key_id(api_key) if api_key else None
    voices = open_voices(settings).seen_by(caller or "")
    check_params(params, voices.of_model(params.model))
    sha256 = digest(table)
    check_table(table, other_columns)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise write_error(out, exc) from exc
    try:
        with FileLock(out / ".lock", timeout=0), progress_bar() as show:
            rows = batch_rows or stored_batch_rows(out) or _batch_rows(settings, ray)
            chosen = BulkOptions(params, format, sample_rate, words, other_columns, max_text, shard_rows, rows, caller)
            folder = open_folder(out, sha256, chosen, _audio(settings, voices, ray))
            run = BulkRun(table, folder, chosen)
            size = run.size(lambda size: show(f"reading {table.name}", 0, 0, f"{size.n_rows:,} rows"))
            _print_size(size)
            rate = SpeakingRate(show, size)
            if size.n_done < size.n_rows:
                show("loading the model", 0, 0)
                _speak(settings, run.missing(), chosen, folder, rate, ray, devices)
            show("writing the index", 0, 0)
            total = folder.write_whole_index(size.n_shards, size.n_rows)
    except Timeout:
        raise InvalidInput(f"another run writes into {out}; wait for its end, or choose another folder") from None
    except KeyboardInterrupt:
        print(f"stopped; run the same command again to resume in {out}", file=sys.stderr)
        raise
    print(f"{out}: {_summary(total, rate)}", file=sys.stderr)
    if total.n_failed:
        print(f"{counted(total.n_failed, 'row')} failed: status and error in {out / 'index.parquet'}", file=sys.stderr)
        raise SystemExit(SOME_FAILED)


class SpeakingRate:
    """Shows how much is spoken, and how fast: hours of audio in an hour."""

    def __init__(self, show: ShowProgress, size: "TableSize") -> None:
        self._show = show
        self._n_rows = size.n_rows
        self._n_done = size.n_done
        self._started_s = time.monotonic()
        self.audio_s = 0.0

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._started_s

    def __call__(self, new: "RunSummary") -> None:
        self._n_done += new.n_rows
        self.audio_s += new.audio_s
        rate = f"{self._n_done:,} of {self._n_rows:,} rows, {self.audio_s / self.took_s:,.1f} hours of audio per hour"
        self._show("speaking", self._n_done, self._n_rows, rate)


def _speak(
    settings: Settings,
    missing: "Iterator[Shard]",
    chosen: "BulkOptions",
    folder: "OutputFolder",
    rate: SpeakingRate,
    ray: str | None,
    devices: int | None,
) -> None:
    """Speak the missing shards here, or with Ray."""
    from tutti.engine import build

    n_cores, on_cuda = os.cpu_count() or 1, not _is_cpu(settings)
    if ray is None:
        from tutti.bulk.local_run import speak_shards

        processes = min(MAX_G2P, max(1, n_cores - 1)) if on_cuda else 0
        engine = build.open_engine(settings, g2p_processes=processes)
        asyncio.run(speak_shards(engine, missing, chosen, folder, rate))
        return
    try:
        from tutti_ray.bulk import LOCAL, speak_shards_with_ray
    except ModuleNotFoundError as exc:
        raise without_ray("tutti bulk --ray", exc) from None

    chosen_settings = settings.model_copy(update={"workers": 1})
    if ray == LOCAL and devices:  # the actors share the cores
        threads = max(1, settings.threads // devices)
        chosen_settings = chosen_settings.model_copy(update={"threads": threads})
    make_engine = partial(build.open_engine, chosen_settings, g2p_processes=1)
    speak_shards_with_ray(make_engine, missing, chosen, folder, rate, address=ray, n_devices=devices)


def _is_cpu(settings: Settings) -> bool:
    from tutti.engine.checkpoints import choose_checkpoints

    return all(choice.device == "cpu" for choice in choose_checkpoints(settings).values())


def _batch_rows(settings: Settings, ray: str | None) -> int:
    is_elsewhere = ray not in (None, "local")
    return CUDA_ROWS if is_elsewhere or not _is_cpu(settings) else max(MIN_ROWS, CPU_ROWS * settings.threads)


def _audio(settings: Settings, voices: "Voices", ray: str | None) -> dict[str, Any]:
    """What the audio depends on: the resolved model, or the settings where only a cluster can resolve them."""
    from tutti.engine.checkpoints import audio_fingerprint

    chunks = {"min_chunk_tokens", "max_chunk_tokens"}
    own = {"own_voices": hashes} if (hashes := voices.hashes(voices)) else {}
    if ray in (None, "local"):
        return {**audio_fingerprint(settings), **settings.model_dump(include=chunks), **own}
    model = {"backend", "device", "precision", "vocoder", "text", "compile", "models", "extra_precisions"}
    names = model | {"g2p_url", "lexicon"}
    return {**settings.model_dump(mode="json", include=names | chunks), **own}


def _print_size(size: "TableSize") -> None:
    print(f"{counted(size.n_rows, 'row')} in {counted(size.n_shards, 'shard')}", file=sys.stderr)
    if size.n_done:
        print(f"resuming: {counted(size.n_done, 'row')} are done", file=sys.stderr)


def _summary(total: "RunSummary", rate: SpeakingRate) -> str:
    n_spoken = total.n_rows - total.n_failed
    speed = f", made at {rate.audio_s / rate.took_s:,.1f} hours per hour" if rate.audio_s else ""
    return f"{counted(n_spoken, 'row')} spoken, {total.audio_s / 3600:,.2f} hours of audio{speed}"
