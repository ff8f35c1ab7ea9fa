"""The Hugging Face hub as a source, through its own client: HF_ENDPOINT, HF_HUB_OFFLINE, tokens and proxies apply."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from http import HTTPStatus
from pathlib import Path

from tutti import __version__
from tutti.weights.manifest import HUB_REPO, HUB_REVISION, File, describe
from tutti.weights.progress import DownloadProgress, GroupProgress
from tutti.weights.source import Offer, Unavailable

CONNECT_S = 3.0  # timeout of the first answer: a machine without internet tries the next source after this
READ_S = 10.0  # timeout of each read
PARALLEL_DOWNLOADS = 6  # the 54 voices are small: one by one they would wait for the network most of the time


class Hub:
    """Offers the files of one repository at one revision."""

    name = "Hugging Face hub"

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        available = [file for file in files if file.hub_path is not None]
        absent = [file for file in files if file.hub_path is None]
        try:
            if available:
                _run_with_timeout(CONNECT_S, lambda: self._probe(available[0]))
            yield from self._offers(available, scratch, GroupProgress(available, progress), absent)
        except OfflineModeIsEnabled:
            yield Unavailable(self.name, "HF_HUB_OFFLINE is set")
        except HfHubHTTPError as error:
            yield Unavailable(self.name, f"answered {error.response.status_code} {error.response.reason_phrase}")
        except TimeoutError:
            yield Unavailable(self.name, f"no answer in {CONNECT_S:g} s")
        except httpx2.TransportError as error:
            yield Unavailable(self.name, f"no connection ({error})")
        if absent:
            yield Unavailable(self.name, f"has no {describe(absent)}")

    def _offers(self, files: list[File], scratch: Path, progress: GroupProgress, absent: list[File]) -> Iterator[Offer]:
        """Download several files at a time, offer each when it is done; add those the hub lacks to `absent`."""
        from huggingface_hub.errors import HfHubHTTPError

        partials = {file: scratch / f"{file.sha256}.partial" for file in files}
        stop = threading.Event()
        pool = ThreadPoolExecutor(PARALLEL_DOWNLOADS, "tutti-hub")
        try:
            downloads = {pool.submit(self._download, file, partials[file], progress, stop): file for file in files}
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

    def _probe(self, file: File) -> None:
        """Find out whether the hub answers at all."""
        from huggingface_hub import get_session

        get_session().head(self._url(file), headers=self._headers(), timeout=READ_S)

    # `hf_hub_download` (2.x) deletes a partial file when it is interrupted. So we stream into our own partial file,
    # named by the sha256, and the next pull requests the rest.
    def _download(self, file: File, partial: Path, progress: GroupProgress, stop: threading.Event) -> None:
        """Stream until the body ends. Reconnect after a broken connection, as long as each one brings some bytes."""
        import httpx2

        while True:
            before = _size(partial)
            try:
                if before < file.size:
                    self._stream(file, partial, progress, stop)
                return
            except httpx2.TransportError:
                if _size(partial) <= before:
                    raise

    def _stream(self, file: File, partial: Path, progress: GroupProgress, stop: threading.Event) -> None:
        import httpx2
        from huggingface_hub import get_session
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # documented, not in __all__

        n_bytes = _size(partial)
        headers = self._headers() | {"accept-encoding": "identity"}  # a range counts bytes of the file itself
        if n_bytes:
            headers["range"] = f"bytes={n_bytes}-"
        timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
        with get_session().stream("GET", self._url(file), headers=headers, timeout=timeout) as response:
            hf_raise_for_status(response)
            if response.status_code != HTTPStatus.PARTIAL_CONTENT:
                n_bytes = 0  # the server ignored the range and sends the whole file
            with partial.open("ab") as out:
                out.truncate(n_bytes)
                progress.update(file, n_bytes)
                for chunk in response.iter_bytes():
                    out.write(chunk)
                    n_bytes += len(chunk)
                    progress.update(file, min(n_bytes, file.size))
                    if n_bytes > file.size or stop.is_set():
                        return  # too long: the sha256 will not match

    def _url(self, file: File) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(HUB_REPO, str(file.hub_path), revision=HUB_REVISION)

    def _headers(self) -> dict[str, str]:
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, not in __all__

        headers: dict[str, str] = build_hf_headers(library_name="tutti", library_version=__version__)
        return headers


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _run_with_timeout(limit_s: float, call: Callable[[], None]) -> None:
    """Run `call` in a thread, or raise TimeoutError: name lookup and several dead addresses outlast HTTP timeouts."""
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            call()
            outcome.set_result(None)
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            outcome.set_exception(error)

    threading.Thread(target=run, name="tutti-hub", daemon=True).start()
    outcome.result(limit_s)
