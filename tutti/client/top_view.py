"""The screen of `tutti top`: waiting jobs, the latest batches as bars, the last seconds in numbers."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
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
COLUMNS = "▁▂▃▄▅▆▇█"
MAX_BATCHES = 200  # that are remembered
WIDE = 110  # columns; from here on the stages are shown side by side
N_PAST = 60  # ticks in a sparkline


@dataclass(slots=True)
class TopState:
    """The server's state as known from its events."""

    hello: Event = field(default_factory=dict)
    tick: Event = field(default_factory=dict)
    batches: dict[int, Event] = field(default_factory=dict)
    n_lost: int = 0
    audio: deque[float] = field(default_factory=lambda: deque(maxlen=N_PAST))
    depth: deque[float] = field(default_factory=lambda: deque(maxlen=N_PAST))

    def apply(self, event: Event) -> None:
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
        for number in sorted(self.batches)[:-MAX_BATCHES]:
            del self.batches[number]

    def latest_batches(self, stage: str, n: int) -> list[Event]:
        """Return the latest batches of a stage, newest first, without those whose end event was lost."""
        running = set(self.tick.get("running", ()))
        newest_first = sorted(self.batches.values(), key=lambda batch: -batch["id"])
        current = (b for b in newest_first if b["stage"] == stage and (b["outcome"] != "running" or b["id"] in running))
        return list(islice(current, n))


def render(state: TopState, url: str, problem: str, width: int, height: int) -> RenderableType:
    """Lay out everything in `width` columns and `height` lines. With a `problem`, the state is out of date."""
    if not state.hello or not state.tick:
        return Align.center(
            Text(problem or f"connecting to {url} …", style="red" if problem else "dim"), vertical="middle"
        )
    stages = state.hello["stages"]
    wide = width >= WIDE
    around = 13 + len(state.hello["workers"]) + bool(problem)
    n_bars = max(2, height - around if wide else (height - around) // len(stages))
    inner = (width - 3) // 2 if wide else width
    bars = [_batches(state, stage, inner, n_bars) for stage in stages]
    parts: list[RenderableType] = [_title(state, url)]
    if problem:
        parts.append(Text(f" {problem}", style="bold white on red", no_wrap=True, overflow="ellipsis"))
    parts += [Rule(style="dim"), _queues(state, width), Rule(style="dim"), _numbers(state, width), Rule(style="dim")]
    if wide:
        pair = Table.grid(padding=(0, 3, 0, 0), expand=False)
        pair.add_row(*bars)
        parts.append(pair)
    else:
        parts += bars
    parts.append(_legend(state))
    return Group(*parts)


def _title(state: TopState, url: str) -> RenderableType:
    tick, hello = state.tick, state.hello
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


def _queues(state: TopState, width: int) -> RenderableType:
    """One line for each stage: a block for each job, oldest first, in the colour of its class."""
    table = Table.grid(padding=(0, 2, 0, 0))
    room = max(8, width - 46)
    for stage, queue in state.tick["queue"].items():
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


def _numbers(state: TopState, width: int) -> RenderableType:
    tick, recent = state.tick, state.tick["lately"]
    first, target = recent["first_audio_ms"], state.hello["settings"]["first_audio_ms"]
    line_width = max(10, min(N_PAST, width - 52))
    table = Table.grid(padding=(0, 2, 0, 0))
    times = _joined((f"{name} {_number(first[name])}", _colour(first[name], target)) for name in ("p50", "p95", "p99"))
    in_time = f"{_share(recent['first_in_time'])} of {first['n']} within {target:,.0f} ms"
    table.add_row(Text(" first audio", "bold"), Text.assemble(*times, " ms"), Text(in_time, "dim"))
    wait_ms = float(tick.get("expected_wait_ms") or tick["backlog_ms"])  # older servers do not send it
    good, every = recent["good_audio_per_s"], recent["audio_per_s"]
    table.add_row(
        Text(" speech", "bold"),
        Text.assemble((f"{every:.2f} s/s", "green" if good >= every else "yellow"), (f"  {good:.2f} good", "dim")),
        Text(sparkline(state.audio, line_width), "green"),
    )
    table.add_row(
        Text(" waiting", "bold"),
        Text.assemble(
            f"{tick['waiting']:,} jobs",
            ("  new streams in ", "dim"),
            (f"{wait_ms / 1000:.1f} s", _colour(wait_ms, target)),
        ),
        Text(sparkline(state.depth, line_width), "yellow"),
    )
    for name, share in recent["busy"].items():
        table.add_row(Text(f" worker {name}", "bold"), Text(f"{_share(share)} busy"), meter(share, line_width))
    counts = [
        (f"{recent[name]} {name}", "red" if recent[name] and name != "cancelled" else "dim")
        for name in ("underruns", "rejected", "failed", "cancelled")
    ]
    table.add_row(Text(" trouble", "bold"), Text.assemble(*_joined(counts[:2])), Text.assemble(*_joined(counts[2:])))
    return table


def _batches(state: TopState, stage: str, width: int, n: int) -> RenderableType:
    """The latest batches of one stage as bars on one scale, newest first."""
    recent = state.tick["lately"]
    rows, padding = recent["rows_per_batch"][stage], recent["padding"][stage]
    head = Text.assemble((f" {stage}", "bold"), no_wrap=True)
    if rows is not None:
        head.append(f"  {rows:.1f} rows a batch, {_share(padding)} padding, {recent['batch_ms'][stage]:.0f} ms", "dim")
    batches = state.latest_batches(stage, n)
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
    """The rows of a batch side by side, padding shaded, empty rows last; `longest` fills the room."""
    cells: list[tuple[str, str, int]] = []  # character, colour, length
    for row in batch["rows"]:
        cells.append((FULL, COLOURS[row["class"]], row["size"]))
        cells.append((PAD, "bright_black", row["padded"] - row["size"]))
    cells.append((PAD, "bright_black", batch["padded"] - sum(row["padded"] for row in batch["rows"])))
    line, at, drawn_to = Text(no_wrap=True), 0, 0
    for number, (character, colour, length) in enumerate(cells):
        at += length
        end = round(room * at / longest)
        shade = colour if character == PAD or number % 4 == 0 else f"dim {colour}"  # alternate rows
        line.append(character * (end - drawn_to), shade)
        drawn_to = end
    return line


def sparkline(values: Sequence[float] | deque[float], width: int) -> str:
    """Draw the latest values as a line of small columns."""
    latest = list(values)[-width:]
    most = max(latest, default=0.0)
    return "".join(COLUMNS[min(7, int(8 * value / most))] if most > 0 else COLUMNS[0] for value in latest)


def meter(share: float, width: int) -> Text:
    """Draw a share from 0 to 1 as a horizontal bar."""
    n = round(share * width)
    return Text.assemble((FULL * n, "blue"), (EMPTY * (width - n), "dim"))


def _legend(state: TopState) -> RenderableType:
    line = Text(" ", no_wrap=True, overflow="ellipsis")
    for kind, colour in COLOURS.items():
        line.append(f"{FULL} ", colour).append(f"{kind}  ", "dim")
    line.append(f"{PAD} ", "bright_black").append("padding  ", "dim").append("took (predicted) ms  Ctrl-C ends", "dim")
    if state.n_lost:
        line.append(f"  {state.n_lost} updates missed", "yellow")
    return line


def _joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str] | str]:
    return [piece for n, part in enumerate(parts) for piece in (("  ", part) if n else (part,))]


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def _colour(value: float | None, target: float) -> str:
    return "dim" if value is None else "green" if value <= target else "red"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.0f} %"


def _clock(seconds: float) -> str:
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
