"""The Hugging Face hub as a source. Its client's variables apply (HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN, HF_HOME), and
proxies. The client itself is not needed: it weighs ten times what is used of it here, a download that goes on where it
was interrupted, which it does not have.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tutti import __version__
from tutti.weights.manifest import HUB_REPO, HUB_REVISION, File, describe
from tutti.weights.progress import DownloadProgress, GroupProgress
from tutti.weights.source import Offer, Unavailable

if TYPE_CHECKING:
    from httpx2 import Client

ENDPOINT = "https://huggingface.co"
TRUE = ("1", "true", "yes", "on")
CONNECT_S = 3.0  # timeout of the first answer: a machine without internet tries the next source after this
READ_S = 10.0  # timeout of each read
PARALLEL_DOWNLOADS = 6  # the 54 voices are small: one by one they would wait for the network most of the time


class Hub:
    """Offers the files of one repository at one revision."""

    name = "Hugging Face hub"

    def __init__(self, repository: str = HUB_REPO, revision: str = HUB_REVISION) -> None:
        self._repository, self._revision = repository, revision

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        import httpx2

        if is_offline():
            yield Unavailable(self.name, "HF_HUB_OFFLINE is set")
            return
        available = [file for file in files if file.hub_path is not None]
        absent = [file for file in files if file.hub_path is None]
        try:
            with open_client() as client:
                if available:
                    # Whatever the answer: it says that there is a hub.
                    _run_with_timeout(CONNECT_S, lambda: client.head(self._url(available[0])))
                yield from self._offers(client, available, scratch, GroupProgress(available, progress), absent)
        except httpx2.HTTPStatusError as error:
            yield Unavailable(self.name, f"answered {error.response.status_code} {error.response.reason_phrase}")
        except TimeoutError:
            yield Unavailable(self.name, f"no answer in {CONNECT_S:g} s")
        except httpx2.TransportError as error:
            yield Unavailable(self.name, f"no connection ({error})")
        if absent:
            yield Unavailable(self.name, f"has no {describe(absent)}")

    def _offers(
        self, client: "Client", files: list[File], scratch: Path, progress: GroupProgress, absent: list[File]
    ) -> Iterator[Offer]:
        """Download several files at a time, offer each when it is done; add those the hub lacks to `absent`."""
        from httpx2 import HTTPStatusError

        partials = {file: scratch / f"{file.sha256}.partial" for file in files}
        stop = threading.Event()
        pool = ThreadPoolExecutor(PARALLEL_DOWNLOADS, "tutti-hub")
        try:
            downloads = {
                pool.submit(_download, client, self._url(file), file, partials[file], progress, stop): file
                for file in files
            }
            for download in as_completed(downloads):
                file = downloads[download]
                try:
                    download.result()
                except HTTPStatusError as error:
                    if error.response.status_code != HTTPStatus.NOT_FOUND:
                        raise
                    absent.append(file)
                else:
                    yield Offer(file, partials[file])
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _url(self, file: File) -> str:
        return file_url(self._repository, self._revision, str(file.hub_path))


def _download(
    client: "Client", url: str, file: File, partial: Path, progress: GroupProgress, stop: threading.Event
) -> None:
    """Stream until the body ends. Reconnect after a broken connection, as long as each one brings some bytes."""
    import httpx2

    while True:
        before = _size(partial)
        try:
            if before < file.size:
                _stream(client, url, file, partial, progress, stop)
            return
        except httpx2.TransportError:
            if _size(partial) <= before:
                raise


def _stream(
    client: "Client", url: str, file: File, partial: Path, progress: GroupProgress, stop: threading.Event
) -> None:
    """Append to the partial file, which is named by the sha256: the next pull requests only the rest."""
    n_bytes = _size(partial)
    headers = {"accept-encoding": "identity"}  # a range counts bytes of the file itself
    if n_bytes:
        headers["range"] = f"bytes={n_bytes}-"
    with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
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


def open_client() -> "Client":
    """Return a client for the hub, with the token of its user."""
    import httpx2

    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    return httpx2.Client(headers=_headers(), timeout=timeout, follow_redirects=True)


def endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT


def is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in TRUE


def file_url(repository: str, revision: str, path: str) -> str:
    return f"{endpoint()}/{repository}/resolve/{revision}/{quote(path)}"


def _headers() -> dict[str, str]:
    token = os.environ.get("HF_TOKEN", "").strip() or _stored_token()
    return {"user-agent": f"tutti/{__version__}"} | ({"authorization": f"Bearer {token}"} if token else {})


def _stored_token() -> str:
    """The token that `hf auth login` has stored; empty without one."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(cache) / "huggingface"
    try:
        return Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _run_with_timeout(limit_s: float, call: Callable[[], object]) -> None:
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
