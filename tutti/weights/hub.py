"""The Hugging Face hub as a source, through its own client: HF_ENDPOINT, HF_HUB_OFFLINE, tokens and proxies apply."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from http import HTTPStatus
from pathlib import Path

from tutti import __version__
from tutti.weights.manifest import HUB_REPO, HUB_REVISION, File, described
from tutti.weights.progress import Progress, Tally
from tutti.weights.source import Offer, Refusal

REACH_S = 3.0  # a machine without internet moves on after this
READ_S = 10.0
LANES = 6  # 54 voices are short: one after the other they would wait for the network more than they load


class Hub:
    """Offers the files of one repository at one revision."""

    name = "Hugging Face hub"

    def __init__(self, repo: str = HUB_REPO, revision: str = HUB_REVISION) -> None:
        self.repo = repo
        self.revision = revision

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        here = [file for file in files if file.hub_path is not None]
        absent = [file for file in files if file.hub_path is None]
        try:
            if here:
                _within(REACH_S, lambda: self._ask(here[0]))
            yield from self._offers(here, scratch, Tally(here, progress), absent)
        except OfflineModeIsEnabled:
            yield Refusal(self.name, "HF_HUB_OFFLINE is set")
        except HfHubHTTPError as error:
            yield Refusal(self.name, f"answered {error.response.status_code} {error.response.reason_phrase}")
        except TimeoutError:
            yield Refusal(self.name, f"no answer in {REACH_S:g} s")
        except httpx2.TransportError as error:
            yield Refusal(self.name, f"no connection ({error})")
        if absent:
            yield Refusal(self.name, f"has no {described(absent)}")

    def _offers(self, files: list[File], scratch: Path, tally: Tally, absent: list[File]) -> Iterator[Offer]:
        """Download in a few lanes and offer what is done; add what the hub does not know to `absent`."""
        from huggingface_hub.errors import HfHubHTTPError

        partials = {file: scratch / f"{file.sha256}.partial" for file in files}
        stop = threading.Event()
        pool = ThreadPoolExecutor(LANES, "tutti-hub")
        try:
            downloads = {pool.submit(self._download, file, partials[file], tally, stop): file for file in files}
            for download in as_completed(downloads):
                file = downloads[download]
                try:
                    download.result()
                except HfHubHTTPError as error:
                    if error.response.status_code != HTTPStatus.NOT_FOUND:
                        raise
                    absent.append(file)
                else:
                    yield Offer(file, partials[file])
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _ask(self, file: File) -> None:
        """Find out whether the hub answers at all, before anything waits for it."""
        from huggingface_hub import get_session

        get_session().head(self._url(file), headers=self._headers(), timeout=READ_S)

    # `hf_hub_download` (2.x) throws a partial file away when it is interrupted. So the hub's client streams into
    # a partial file of ours, named by the sha256, and the next pull asks for the rest.
    def _download(self, file: File, partial: Path, tally: Tally, stop: threading.Event) -> None:
        """Stream until the body ends. A cut connection is taken up again as long as each one brings something."""
        import httpx2

        while True:
            before = _size(partial)
            try:
                if before < file.size:
                    self._stream(file, partial, tally, stop)
                return
            except httpx2.TransportError:
                if _size(partial) <= before:
                    raise

    def _stream(self, file: File, partial: Path, tally: Tally, stop: threading.Event) -> None:
        import httpx2
        from huggingface_hub import get_session
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # documented, not in __all__

        done = _size(partial)
        headers = self._headers() | {"accept-encoding": "identity"}  # a range counts bytes of the file itself
        if done:
            headers["range"] = f"bytes={done}-"
        timeout = httpx2.Timeout(READ_S, connect=REACH_S)
        with get_session().stream("GET", self._url(file), headers=headers, timeout=timeout) as response:
            hf_raise_for_status(response)
            if response.status_code != HTTPStatus.PARTIAL_CONTENT:
                done = 0  # the server sends all of it, whatever we asked for
            with partial.open("ab") as out:
                out.truncate(done)
                tally.now(file, done)
                for chunk in response.iter_bytes():
                    out.write(chunk)
                    done += len(chunk)
                    tally.now(file, min(done, file.size))
                    if done > file.size or stop.is_set():
                        return  # too long is not our file: the sha256 will say so

    def _url(self, file: File) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repo, str(file.hub_path), revision=self.revision)

    def _headers(self) -> dict[str, str]:
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, not in __all__

        headers: dict[str, str] = build_hf_headers(library_name="tutti", library_version=__version__)
        return headers


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _within(limit_s: float, call: Callable[[], None]) -> None:
    """Run `call`, or raise TimeoutError: a name lookup, and a host of many dead addresses, outlast any timeout."""
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits
            ended.put(error)
        else:
            ended.put(None)

    threading.Thread(target=run, name="tutti-hub", daemon=True).start()
    try:
        error = ended.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
