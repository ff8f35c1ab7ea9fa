"""The HTTP processes of a server, as its own process sees them: started, replaced when they die, drained, closed."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from tutti.process.link import Link
from tutti.process.messages import WithDescriptor
from tutti.process.supervisor import ChildLost, Supervisor
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.front import child_main
from tutti.server.front.messages import (
    Beat,
    Connection,
    Drain,
    Drained,
    EngineState,
    LeaveStream,
    MetricsReport,
    NextSpeech,
    ReportMetrics,
    StartStream,
    StreamReport,
)
from tutti.server.front.placement import EngineLoad, Place, placement
from tutti.server.front.stream_server import StreamServer
from tutti.settings import Settings

REPORT_TIMEOUT_S = 2.0  # for the answer of an HTTP process; then its last report counts
DRAINED_S = 0.3  # after the grace time, for a process to say whether it is idle; a hung one delays the end so long
EXIT_S = 1.2  # for a process to end by itself; then it is killed, so that the server ends within 2 s of the grace time
BEAT_S = 1.0  # between two questions; shorter notices sooner, and wakes every process more often
LATE_BEATS = 3  # without an answer, after which the server says that it is not ready
HUNG_BEATS = 10  # after which the process hangs and is killed; fewer would kill one that is slow on a busy machine
START_BEATS = 60  # the same for a process that has not answered yet: it imports its modules
log = logging.getLogger("tutti.server")

TakeOver = Callable[[socket.socket, bytes], None]  # a connection that a process handed on, and what it read from it


def summed(reports: Iterable[Iterable[Metric]]) -> list[Metric]:
    """All metrics; samples with the same name and labels are added, but of their times of creation the first counts."""
    metrics: dict[str, Metric] = {}
    values: dict[tuple[str, str, frozenset[tuple[str, str]]], Sample] = {}
    for report in reports:
        for metric in report:
            if metric.name not in metrics:
                metrics[metric.name] = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            for sample in metric.samples:
                key = metric.name, sample.name, frozenset(sample.labels.items())
                before = values.get(key)
                if before is None:
                    values[key] = sample
                elif sample.name.endswith("_created"):
                    values[key] = before._replace(value=min(before.value, sample.value))
                else:
                    values[key] = before._replace(value=before.value + sample.value)
    for (name, _, _), sample in values.items():
        metrics[name].samples.append(sample)
    return list(metrics.values())


def counters(metrics: Iterable[Metric]) -> list[Metric]:
    """Those that only grow: what a process has counted still holds after its end."""
    return [metric for metric in metrics if metric.type in ("counter", "histogram", "summary")]


class Heartbeat:
    """The beats of one process after the other in the same place: not time, so that a pause of ours is not its."""

    def __init__(self) -> None:
        self.answers = True  # the first process of a place is not missed while it starts
        self._n_missed = 0
        self._is_starting = True

    @property
    def is_hung(self) -> bool:
        return self._n_missed > (START_BEATS if self._is_starting else HUNG_BEATS)

    def asked(self) -> None:
        """A question is sent."""
        self._n_missed += 1
        if self._n_missed > LATE_BEATS and not self._is_starting:
            self.answers = False

    def answered(self) -> None:
        self._n_missed, self._is_starting, self.answers = 0, False, True

    def lost(self) -> None:
        """The process is gone; another one is started."""
        self._n_missed, self._is_starting, self.answers = 0, True, False


class HttpProcess:
    """One process after the other, behind the same listening socket."""

    def __init__(self, pool: "HttpProcesses", listening: socket.socket) -> None:
        self._pool = pool
        self._listening = listening  # kept open: connections wait in it while the process is replaced
        place = child_main.Place(
            pool.settings, pool.n_processes, pool.state, pool.engine.refusals, pool.load, listening
        )
        self._supervisor = Supervisor(
            "tutti-http", child_main.main, (place,),
            began=self._began, receive=self._receive, lost=self._lost, grace_s=EXIT_S,
        )  # fmt: skip
        self._streams: StreamServer | None = None
        self._is_ending = False  # no other process is started
        self._is_closing = False
        self._metrics: list[Metric] = []  # as last reported
        self._past: list[Metric] = []  # counted by processes that died
        self._reported = asyncio.Event()
        self._drained = asyncio.Event()
        self._in_time = True
        self._heartbeat = Heartbeat()
        self._watching: asyncio.Task[None] | None = None  # referenced, or it might be collected
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._supervisor.start()

    @property
    def answers(self) -> bool:
        """Whether it answers, or is only just being started with the server."""
        return self._heartbeat.answers

    def send(self, message: object) -> None:
        if (link := self._supervisor.link) is not None:
            link.send(message)

    async def drain(self, grace_s: float) -> bool:
        """Refuse new work; False if requests are still active after the grace time."""
        self._is_ending = True
        self._supervisor.retire()
        if self._supervisor.link is None:
            return True
        self.send(Drain(grace_s))
        try:
            await asyncio.wait_for(self._drained.wait(), grace_s + DRAINED_S)
        except TimeoutError:
            return False
        return self._in_time

    async def metrics(self) -> list[Metric]:
        """What this process and those before it have counted."""
        if self._supervisor.link is not None:
            self._reported.clear()
            self.send(ReportMetrics())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._reported.wait(), REPORT_TIMEOUT_S)
        return summed([self._past, self._metrics])

    async def close(self) -> None:
        """End the process, whatever it does."""
        if not self._is_closing:
            self._is_ending = self._is_closing = True
            self._forget()
        await self._supervisor.close()

    def _began(self) -> None:
        link = self._supervisor.link
        assert link is not None
        self._streams = StreamServer(self._pool.engine, link.send)
        link.send(self._pool.state)
        self._watching = self._loop.create_task(self._watch(link))

    async def _watch(self, link: Link) -> None:
        """Ask the process again and again whether it answers, and kill it if it does not."""
        while self._supervisor.link is link:
            self._heartbeat.asked()
            self._stand_in()
            link.send(Beat())
            await asyncio.sleep(BEAT_S)
            if self._supervisor.link is link and self._heartbeat.is_hung:
                log.error("an HTTP process does not answer; it is killed pid=%d", self._supervisor.pid)
                self._supervisor.kill(ChildLost("did not answer and was killed"))
                return

    def _stand_in(self) -> None:
        """Accept the connections of a process that does not answer, and leave them to one that does."""
        if self._heartbeat.answers or self._is_closing:
            self._loop.remove_reader(self._listening.fileno())
        else:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            sock, _ = self._listening.accept()
        except BlockingIOError:
            pass
        except OSError:  # no descriptor is left: tried again at the next beat
            self._loop.remove_reader(self._listening.fileno())
        else:
            self._pool.take_over(sock, b"")

    def _receive(self, message: object) -> None:
        match message:
            case StartStream() | NextSpeech() | LeaveStream():
                assert self._streams is not None
                self._streams.receive(message)
                self._pool.load.count(self._pool.engine.n_streams)
            case WithDescriptor(Connection(data), descriptor):
                if descriptor is not None:
                    self._pool.take_over(socket.socket(fileno=descriptor), data)
            case Beat():
                self._supervisor.answered()
                self._heartbeat.answered()
                self._stand_in()
            case MetricsReport(metrics):
                self._metrics = metrics
                self._reported.set()
            case StreamReport(n_refused, first_audio):
                for _ in range(n_refused):
                    self._pool.engine.count_refusal()
                for waited_s, delivery in first_audio:
                    self._pool.engine.first_audio(waited_s, delivery)
            case Drained(in_time):
                self._in_time = in_time
                self._drained.set()

    def _lost(self, reason: Exception, wait_s: float) -> None:
        if not isinstance(reason, ChildLost):
            log.error("an HTTP process could not be started: %s; it is tried again in %g s", reason, wait_s)
        elif not self._is_ending:
            log.error("the HTTP process %s; another one is started in %g s", reason, wait_s)
        self._forget()

    def _forget(self) -> None:
        """End what the process that is gone has left here."""
        if self._streams is not None:
            self._streams.close()
        self._streams = None
        self._heartbeat.lost()
        self._stand_in()
        self._past, self._metrics = summed([self._past, counters(self._metrics)]), []
        self._drained.set()
        self._reported.set()


class HttpProcesses(Collector):
    """All of them; as a collector, the metrics of the server together with theirs."""

    def __init__(
        self, engine: EngineProtocol, settings: Settings, registry: CollectorRegistry, n_processes: int
    ) -> None:
        self.engine = engine
        engine.refusals.share()
        self.load = EngineLoad()
        self.settings, self.n_processes = share_of(settings, n_processes), n_processes
        self.take_over: TakeOver
        self._registry = registry
        self._processes: list[HttpProcess] = []
        self._loop: asyncio.AbstractEventLoop

    @property
    def state(self) -> EngineState:
        return EngineState(self.engine.ready, self.engine.checkpoints, self.engine.batching_enabled)

    def start(self, sockets: Sequence[socket.socket], take_over: TakeOver) -> None:
        """Start a process for each listening socket."""
        self._loop = asyncio.get_running_loop()
        self.take_over = take_over
        self._processes = [HttpProcess(self, sock) for sock in sockets]

    def place(self, head: bytes) -> Place:
        """Where a request that has arrived in the server's process is answered."""
        self.load.count(self.engine.n_streams)
        return placement(head, in_engine=True, is_busy=self.load.is_busy)

    @property
    def answer(self) -> bool:
        """Whether all of them answer."""
        return all(process.answers for process in self._processes)

    def engine_started(self) -> None:
        """Let the processes accept work."""
        for process in self._processes:
            process.send(self.state)

    async def drain(self, grace_s: float) -> bool:
        """Refuse new work in all of them; False if requests are still active after the grace time."""
        return all(await asyncio.gather(*(process.drain(grace_s) for process in self._processes)))

    async def close(self) -> None:
        await asyncio.gather(*(process.close() for process in self._processes))

    def collect(self) -> Iterable[Metric]:
        """Called in a thread, as /metrics does."""
        reports = asyncio.run_coroutine_threadsafe(self._reports(), self._loop).result()
        return summed([list(self._registry.collect()), *reports])

    async def _reports(self) -> list[list[Metric]]:
        return list(await asyncio.gather(*(process.metrics() for process in self._processes)))


def share_of(settings: Settings, n_processes: int) -> Settings:
    """The settings of one HTTP process: its part of what the server as a whole may hold."""
    return settings.model_copy(
        update={
            "max_audio_mb": settings.max_audio_mb / n_processes,
            "cache_mb": settings.cache_mb / n_processes,
        }
    )
