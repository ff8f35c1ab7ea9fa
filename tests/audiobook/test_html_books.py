"""HTML: visible text is read, hidden text is not, and no markup crashes the parser."""

import io
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.blocks import join_blocks, parse_blocks
from tutti.errors import InvalidInput, NothingToSpeak


def book(markup: str | bytes, name: str = "book.html") -> Book:
    return read_book(io.BytesIO(markup.encode() if isinstance(markup, str) else markup), name)


def text(markup: str) -> str:
    return join_blocks(parse_blocks(markup)[1])


WORD = st.text("abcdefgh", min_size=3, max_size=8)
BLOCK = st.sampled_from(
    ["p", "div", "h1", "h2", "h5", "blockquote", "li", "td", "section", "article", "dd", "pre", "aside"]
)
INLINE = st.sampled_from(["b", "em", "span", "a", "sup", "code", "i", "font", "q", "unknown-tag"])


@st.composite
def visible_pages(draw: st.DrawFn, depth: int = 0) -> tuple[str, list[str]]:
    """Markup, and its visible words."""
    markup, words = "", list[str]()
    for _ in range(draw(st.integers(1, 3))):
        if depth < 3 and draw(st.booleans()):
            inner, inside = draw(visible_pages(depth + 1))
            tag = draw(BLOCK | INLINE)
            markup += f'<{tag} class="x">{inner}</{tag}>' if draw(st.booleans()) else f"<{tag}>{inner}"  # or unclosed
        else:
            inside = draw(st.lists(WORD, min_size=1, max_size=4))
            markup += " " + " ".join(inside) + draw(st.sampled_from([" ", ", ", "<br>", "<hr/>", "\n", "<!-- x -->"]))
        words += inside
    return markup, words


@given(page=visible_pages())
def test_no_visible_word_is_lost_or_doubled(page: tuple[str, list[str]]) -> None:
    markup, words = page
    assert re.findall(r"[a-h]{3,}", text(markup)) == words


@given(
    st.lists(
        st.sampled_from([*"<>/=\"'&;!-[] abp#x1", "<p", "</", "<!--", "<![CDATA[", "]]>", "<script>", "hidden"])
    ).map("".join)
)
def test_no_markup_crashes_the_parser(markup: str) -> None:
    text(markup)


@pytest.mark.parametrize(
    "piece", ["<a '", '<a "', "<!--", "<![CDATA[", "<", "<p hidden>", "<script>", "&#", "</p", "<a b="]
)
def test_hostile_markup_takes_linear_time(piece: str) -> None:
    def cpu_s(n: int) -> float:
        started_s = time.process_time()
        text(piece * n)
        return time.process_time() - started_s

    short_s = min(cpu_s(2_000) for _ in range(5))
    assert cpu_s(32_000) < 80 * short_s  # 16 times as long; in quadratic time 256 times as much


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>no()</script>", "<style>no</style>", "<p hidden>no</p>", "<div aria-hidden='true'><p>no</p></div>",
        "<span style='display: none'>no</span>", "<template>no</template>", "<!-- no -->", "<svg><text>no</text></svg>",
        "<nav><a href='x'>no</a></nav>", "<a epub:type='noteref' href='#n'>no</a>", "<ruby><rt>no</rt></ruby>",
        "<sup><a href='#fn1'>12</a></sup>", "<span role='doc-pagebreak'>no</span>", "<img src='no' alt='no.jpg'/>",
    ],
)  # fmt: skip
def test_hidden_content_is_not_read(hidden: str) -> None:
    assert text(f"<p>before {hidden} after</p><p>end</p>").split() == ["before", "after", "end"]


def test_lists_tables_images_and_line_breaks_become_readable_text() -> None:
    assert text("<ul><li>milk<li>eggs</ul>") == "• milk\n• eggs"
    assert text("<ol start=4><li>four</li><li>five</li></ol>") == "4. four\n5. five"
    table = "<table><tr><th>name</th><th>age</th></tr><tr><td>Ada</td><td>36</td></tr></table>"
    assert text(table) == "• name, age.\n• Ada, 36."
    assert text("<p>a road<img alt='A map of the island'>ends</p>") == "a road\n\nA map of the island.\n\nends"
    assert text("<p><img alt='T'>he king</p>") == "The king"
    assert text("<p>a<![CDATA[ <b> ]]>c</p><?x y?><!DOCTYPE z>") == "a <b> c"
    assert text("<p>roses<br>violets</p>") == "roses\nviolets"
    assert text("<p>one  \n two</p><p> </p><p>&amp; &lt;three&gt;</p>") == "one two\n\n& <three>"


def test_a_mark_on_a_page_is_spoken_and_not_obeyed() -> None:
    assert "[" not in text("<p>write [pause:1s] or [voice:nobody] or [/rate]</p>")
    assert text("<p>&lt;speak&gt; and [x](/y/)</p>") == "‹speak> and [x] (/y/)"


def test_chapters_begin_at_the_first_level_with_several_headings() -> None:
    parsed = book("<title>T</title><h1>T</h1><p>front</p><h2>One</h2><p>a</p><h3>deep</h3><p>b</p><h2>Two</h2><p>c</p>")
    assert [chapter.title for chapter in parsed.chapters] == ["T", "One", "Two"]
    assert parsed.chapters[1].text == "One\n\na\n\ndeep\n\nb"


def test_a_part_heading_without_text_joins_its_first_chapter() -> None:
    parsed = book("<h1>I</h1><h2>A</h2><p>a</p><h2>B</h2><p>b</p><h1>II</h1><h2>C</h2><p>c</p>")
    assert [(chapter.title, chapter.text) for chapter in parsed.chapters] == [
        ("I: A", "I\n\nA\n\na"),
        ("B", "B\n\nb"),
        ("II: C", "II\n\nC\n\nc"),
    ]


def test_encodings_are_declared_or_given_and_never_guessed() -> None:
    assert book("<meta charset='latin-1'><p>café</p>".encode("latin-1")).chapters[0].text == "café"
    assert book("<p>café</p>".encode("utf-16")).chapters[0].text == "café"
    with pytest.raises(InvalidInput, match=r"byte 6.*latin-1"):
        book("<p>café</p>".encode("latin-1"))
    with pytest.raises(InvalidInput, match="not an encoding"):
        book("<meta charset='klingon'><p>nuqneH</p>")


def test_a_page_without_text_and_an_unknown_suffix_are_errors() -> None:
    with pytest.raises(NothingToSpeak, match="no text"):
        book("<p>…</p><script>alert(1)</script>")
    with pytest.raises(InvalidInput, match=r"\.epub"):
        book("x", "book.doc")
