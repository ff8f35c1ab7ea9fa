"""Finished audiobooks as a podcast: RSS 2.0 with the tags of Apple and of Podcasting 2.0."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

from tutti.audio.tagged import container
from tutti.audiobook.jobs import AudiobookJob

ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd"
PODCAST = "https://podcastindex.org/namespace/1.0"
TITLE = "Audiobooks of tutti"
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ElementTree.register_namespace("itunes", ITUNES)
ElementTree.register_namespace("podcast", PODCAST)


@dataclass(frozen=True, slots=True)
class PodcastItem:
    """A finished book and the size of its file."""

    job: AudiobookJob
    n_bytes: int


def podcast_item(job: AudiobookJob, path: Path) -> PodcastItem:
    return PodcastItem(job, path.stat().st_size)


def podcast(items: Iterable[PodcastItem], base: str, key: str) -> bytes:
    """The feed of these books; `base`: the address of the jobs, `key`: added to every link if there is one."""
    query = f"?{urlencode({'api_key': key})}" if key else ""
    rss = ElementTree.Element("rss", {"version": "2.0"})
    channel = ElementTree.SubElement(rss, "channel")
    _add(channel, "title", TITLE)
    _add(channel, "link", base.removesuffix("/v1/jobs") + "/#books")
    _add(channel, "description", "Books that this server has read aloud.")
    _add(channel, f"{{{ITUNES}}}block", "Yes")  # no directory should list it
    for item in items:
        _add_item(channel, item, f"{base}/{item.job.id}", query)
    feed: bytes = ElementTree.tostring(rss, "utf-8", xml_declaration=True)
    return feed


def _add_item(channel: ElementTree.Element, item: PodcastItem, address: str, query: str) -> None:
    job = item.job
    element = ElementTree.SubElement(channel, "item")
    _add(element, "title", job.title)
    _add(element, "guid", job.id, isPermaLink="false")
    _add(element, "pubDate", formatdate(job.created_s))
    if job.author:
        _add(element, f"{{{ITUNES}}}author", job.author)
    _add(element, f"{{{ITUNES}}}duration", str(round(job.duration_s or 0)))
    kind = container(job.suffix).media_type
    _add(element, "enclosure", url=f"{address}/audio{query}", length=str(item.n_bytes), type=kind)
    _add(element, f"{{{PODCAST}}}chapters", url=f"{address}/chapters{query}", type="application/json+chapters")
    if job.has_cover:
        _add(element, f"{{{ITUNES}}}image", href=f"{address}/cover{query}")


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> None:
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = _NOT_XML.sub("", text) or None
