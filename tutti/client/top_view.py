"""The batching as a picture for the terminal: who waits, the last batches as bars, the last seconds in numbers."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.align import Align
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

Event = dict[str, Any]
COLOURS = {"first": "green", "next": "cyan", "bulk": "magenta"}
FULL, PAD, EMPTY = "█", "░", "·"
STEPS = "▁▂▃▄▅▆▇█"
KEPT = 200  # batches
WIDE = 110  # columns from which on both stages stand side by side
N_PAST = 60  # ticks in a small curve


@dataclass(slots=True)
class Scene:
    """What the events have told so far."""

    hello: Event = field(default_factory=dict)
    tick: Event = field(default_factory=dict)
    batches: dict[int, Event] = field(default_factory=dict)
    n_lost: int = 0
    audio: deque[float] = field(default_factory=lambda: deque(maxlen=N_PAST))
    depth: deque[float] = field(default_factory=lambda: deque(maxlen=N_PAST))

    def take(self, event: Event) -> None:
        if event["type"] in ("hello", "stats"):
            self.hello, self.n_lost = event, 0
            self.batches.clear()
        if event["type"] in ("tick", "stats"):
            self.tick = event
            self.audio.append(event["lately"]["audio_per_s"])
            self.depth.append(event["waiting"])
        if event["type"] == "lost":
            self.n_lost += event["ticks"]
        for batch in event.get("batches", ()):
            self.batches[batch["id"]] = batch
        for number in sorted(self.batches)[:-KEPT]:
            del self.batches[number]

    def shown(self, stage: str, n: int) -> list[Event]:
        """The last batches of a stage, newest first; one whose end was lost is not among them."""
        running = set(self.tick.get("running", ()))
        told = sorted(self.batches.values(), key=lambda batch: -batch["id"])
        here = (b for b in told if b["stage"] == stage and (b["outcome"] != "running" or b["id"] in running))
        return [batch for batch, _ in zip(here, range(n), strict=False)]


def draw(scene: Scene, url: str, trouble: str, width: int, height: int) -> RenderableType:
    """Everything, in so many columns and lines. With `trouble`, what is shown is the past."""
    if not scene.hello or not scene.tick:
        return Align.center(
            Text(trouble or f"looking at {url} …", style="red" if trouble else "dim"), vertical="middle"
        )
    stages = scene.hello["stages"]
    wide = width >= WIDE
    around = 13 + len(scene.hello["workers"]) + bool(trouble)
    n_bars = max(2, height - around if wide else (height - around) // len(stages))
    inner = (width - 3) // 2 if wide else width
    lanes = [_lane(scene, stage, inner, n_bars) for stage in stages]
    parts: list[RenderableType] = [_title(scene, url, width)]
    if trouble:
        parts.append(Text(f" {trouble}", style="bold white on red", no_wrap=True, overflow="ellipsis"))
    parts += [Rule(style="dim"), _queues(scene, width), Rule(style="dim"), _numbers(scene, width), Rule(style="dim")]
    if wide:
        pair = Table.grid(padding=(0, 3, 0, 0), expand=False)
        pair.add_row(*lanes)
        parts.append(pair)
    else:
        parts += lanes
    parts.append(_legend(scene))
    return Group(*parts)


def _title(scene: Scene, url: str, width: int) -> RenderableType:
    tick, hello = scene.tick, scene.hello
    left = Text.assemble((" tutti top ", "bold reverse"), "  ", (url, "bold"), no_wrap=True, overflow="ellipsis")
    trial = tick["trial"]
    right = Text(no_wrap=True)
    if trial:
        right.append(f"trial, {trial['left_s']:.0f} s left: ", "yellow")
    right.append(tick["policy"], "bold yellow" if trial else "bold")
    right.append(f"  ≤ {hello['settings']['max_batch_size']} rows", "dim")
    right.append(f"  up {_clock(tick['t'])} ", "dim")
    row = Table.grid(expand=True)
    row.add_column(ratio=1)
    row.add_column(justify="right")
    row.add_row(left, right)
    return Padding(row, 0, expand=True)


def _queues(scene: Scene, width: int) -> RenderableType:
    """One line for each stage: a block for each job, the oldest first, in the colour of its class."""
    table = Table.grid(padding=(0, 2, 0, 0))
    room = max(8, width - 46)
    for stage, queue in scene.tick["queue"].items():
        line = Text(no_wrap=True)
        for job in queue["jobs"][:room]:
            late = job["due_ms"] < 0
            line.append("▪", f"bold {COLOURS[job['class']]}" + (" underline" if late else ""))
        counts = Text.assemble(
            *_joined((f"{queue[kind]} {kind}", COLOURS[kind] if queue[kind] else "dim") for kind in COLOURS)
        )
        age = f"{queue['jobs'][0]['age_ms']:,.0f} ms" if queue["jobs"] else "—"
        table.add_row(Text(f" {stage}", "bold"), counts, Text(f"{age:>8}", "dim"), line)
    return table


def _numbers(scene: Scene, width: int) -> RenderableType:
    tick, lately = scene.tick, scene.tick["lately"]
    first, target = lately["first_audio_ms"], scene.hello["settings"]["first_audio_ms"]
    curve_width = max(10, min(N_PAST, width - 52))
    table = Table.grid(padding=(0, 2, 0, 0))
    times = _joined((f"{name} {_number(first[name])}", _judged(first[name], target)) for name in ("p50", "p95", "p99"))
    in_time = f"{_share(lately['first_in_time'])} of {first['n']} within {target:,.0f} ms"
    table.add_row(Text(" first audio", "bold"), Text.assemble(*times, " ms"), Text(in_time, "dim"))
    good, every = lately["good_audio_per_s"], lately["audio_per_s"]
    table.add_row(
        Text(" speech", "bold"),
        Text.assemble((f"{every:.2f} s/s", "green" if good >= every else "yellow"), (f"  {good:.2f} good", "dim")),
        Text(curve(scene.audio, curve_width), "green"),
    )
    table.add_row(
        Text(" waiting", "bold"),
        Text.assemble(f"{tick['waiting']:,} jobs", (f"  {tick['backlog_ms'] / 1000:.1f} s of work", "dim")),
        Text(curve(scene.depth, curve_width), "yellow"),
    )
    for name, share in lately["busy"].items():
        table.add_row(Text(f" worker {name}", "bold"), Text(f"{_share(share)} busy"), meter(share, curve_width))
    wrong = [
        (f"{lately[what]} {what}", "red" if lately[what] and what != "cancelled" else "dim")
        for what in ("underruns", "rejected", "failed", "cancelled")
    ]
    table.add_row(Text(" trouble", "bold"), Text.assemble(*_joined(wrong[:2])), Text.assemble(*_joined(wrong[2:])))
    return table


def _lane(scene: Scene, stage: str, width: int, n: int) -> RenderableType:
    """The last batches of one stage as bars, newest first, all on one scale."""
    lately = scene.tick["lately"]
    rows, padding = lately["rows_per_batch"][stage], lately["padding"][stage]
    head = Text.assemble((f" {stage}", "bold"), no_wrap=True)
    if rows is not None:
        head.append(f"  {rows:.1f} rows a batch, {_share(padding)} padding, {lately['batch_ms'][stage]:.0f} ms", "dim")
    batches = scene.shown(stage, n)
    room = max(10, width - 42)
    longest = max((batch["padded"] for batch in batches), default=1)
    lines: list[RenderableType] = [head]
    for batch in batches:
        line = Text(no_wrap=True).append(f" {batch['id']:>6}", "dim")
        line.append(f"{len(batch['rows']):>4} × ", "bold" if len(batch["rows"]) > 1 else "dim")
        line.append(f"{batch['reason']:<8} ", "yellow" if batch["reason"] == "retry" else "")
        line.append(
            _took(batch), "bold" if batch["outcome"] == "running" else "red" if batch["outcome"] != "done" else ""
        )
        line.append_text(bar(batch, room, longest))
        lines.append(line)
    lines += [Text(" ")] * (n - len(batches))
    return Group(*lines)


def _took(batch: Event) -> str:
    if batch["outcome"] != "done":
        return f"{batch['outcome']:>7} ({batch['predicted_ms']:,.0f})".ljust(19)
    return f"{batch['ms']:>7,.0f} ms ({batch['predicted_ms']:,.0f})".ljust(19)


def bar(batch: Event, room: int, longest: int) -> Text:
    """The rows of a batch one after the other, padding shaded, blank rows last; so long as its share of the longest."""
    cells: list[tuple[str, str, int]] = []  # what, colour, length
    for row in batch["rows"]:
        cells.append((FULL, COLOURS[row["class"]], row["size"]))
        cells.append((PAD, "bright_black", row["padded"] - row["size"]))
    cells.append((PAD, "bright_black", batch["padded"] - sum(row["padded"] for row in batch["rows"])))
    drawn, at, to = Text(no_wrap=True), 0, 0
    for number, (what, colour, length) in enumerate(cells):
        at += length
        end = round(room * at / longest)
        shade = colour if what == PAD or number % 4 == 0 else f"dim {colour}"  # so that neighbours can be told apart
        drawn.append(what * (end - to), shade)
        to = end
    return drawn


def curve(values: Sequence[float] | deque[float], width: int) -> str:
    """The last values as a line of small columns."""
    shown = list(values)[-width:]
    most = max(shown, default=0.0)
    return "".join(STEPS[min(7, int(8 * value / most))] if most > 0 else STEPS[0] for value in shown)


def meter(share: float, width: int) -> Text:
    n = round(share * width)
    return Text.assemble((FULL * n, "blue"), (EMPTY * (width - n), "dim"))


def _legend(scene: Scene) -> RenderableType:
    line = Text(" ", no_wrap=True, overflow="ellipsis")
    for kind, colour in COLOURS.items():
        line.append(f"{FULL} ", colour).append(f"{kind}  ", "dim")
    line.append(f"{PAD} ", "bright_black").append("padding  ", "dim").append("took (predicted) ms  Ctrl-C ends", "dim")
    if scene.n_lost:
        line.append(f"  {scene.n_lost} updates missed", "yellow")
    return line


def _joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str] | str]:
    return [piece for n, part in enumerate(parts) for piece in (("  ", part) if n else (part,))]


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def _judged(value: float | None, target: float) -> str:
    return "dim" if value is None else "green" if value <= target else "red"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.0f} %"


def _clock(seconds: float) -> str:
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
