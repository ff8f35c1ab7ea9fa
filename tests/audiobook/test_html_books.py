"""HTML: what a browser shows is read, what it hides is not, and nothing breaks the reader."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.blocks import blocks, joined
from tutti.errors import InvalidInput, NothingToSpeak


def book(markup: str | bytes, name: str = "book.html") -> Book:
    return read_book(io.BytesIO(markup.encode() if isinstance(markup, str) else markup), name)


def text(markup: str) -> str:
    return joined(blocks(markup)[1])


WORD = st.text("abcdefgh", min_size=3, max_size=8)
BLOCK = st.sampled_from(
    ["p", "div", "h1", "h2", "h5", "blockquote", "li", "td", "section", "article", "dd", "pre", "aside"]
)
INLINE = st.sampled_from(["b", "em", "span", "a", "sup", "code", "i", "font", "q", "unknown-tag"])


@st.composite
def shown(draw: st.DrawFn, depth: int = 0) -> tuple[str, list[str]]:
    """Markup, and the words in it that a reader sees."""
    markup, words = "", list[str]()
    for _ in range(draw(st.integers(1, 3))):
        if depth < 3 and draw(st.booleans()):
            inner, found = draw(shown(depth + 1))
            tag = draw(BLOCK | INLINE)
            markup += f'<{tag} class="x">{inner}</{tag}>' if draw(st.booleans()) else f"<{tag}>{inner}"  # or unclosed
        else:
            found = draw(st.lists(WORD, min_size=1, max_size=4))
            markup += " " + " ".join(found) + draw(st.sampled_from([" ", ", ", "<br>", "<hr/>", "\n", "<!-- x -->"]))
        words += found
    return markup, words


@given(page=shown())
def test_no_word_that_is_seen_is_lost_or_doubled(page: tuple[str, list[str]]) -> None:
    markup, words = page
    assert re.findall(r"[a-h]{3,}", text(markup)) == words


@given(
    st.lists(
        st.sampled_from([*"<>/=\"'&;!-[] abp#x1", "<p", "</", "<!--", "<![CDATA[", "]]>", "<script>", "hidden"])
    ).map("".join)
)
def test_no_markup_breaks_the_reader(markup: str) -> None:
    text(markup)


@pytest.mark.parametrize(
    "piece", ["<a '", '<a "', "<!--", "<![CDATA[", "<", "<p hidden>", "<script>", "&#", "</p", "<a b="]
)
def test_hostile_markup_takes_time_in_proportion_to_its_length(piece: str) -> None:
    text(piece * 100_000)  # minutes where it is quadratic


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>no()</script>", "<style>no</style>", "<p hidden>no</p>", "<div aria-hidden='true'><p>no</p></div>",
        "<span style='display: none'>no</span>", "<template>no</template>", "<!-- no -->", "<svg><text>no</text></svg>",
        "<nav><a href='x'>no</a></nav>", "<a epub:type='noteref' href='#n'>no</a>", "<ruby><rt>no</rt></ruby>",
        "<sup><a href='#fn1'>12</a></sup>", "<span role='doc-pagebreak'>no</span>", "<img src='no' alt='no.jpg'/>",
    ],
)  # fmt: skip
def test_what_is_hidden_is_not_read(hidden: str) -> None:
    assert text(f"<p>before {hidden} after</p><p>end</p>").split() == ["before", "after", "end"]


def test_lists_tables_pictures_and_lines_are_read_as_a_person_would() -> None:
    assert text("<ul><li>milk<li>eggs</ul>") == "• milk\n• eggs"
    assert text("<ol start=4><li>four</li><li>five</li></ol>") == "4. four\n5. five"
    table = "<table><tr><th>name</th><th>age</th></tr><tr><td>Ada</td><td>36</td></tr></table>"
    assert text(table) == "• name, age.\n• Ada, 36."
    assert text("<p>a road<img alt='A map of the island'>ends</p>") == "a road\n\nA map of the island.\n\nends"
    assert text("<p><img alt='T'>he king</p>") == "The king"
    assert text("<p>a<![CDATA[ <b> ]]>c</p><?x y?><!DOCTYPE z>") == "a <b> c"
    assert text("<p>roses<br>violets</p>") == "roses\nviolets"
    assert text("<p>one  \n two</p><p> </p><p>&amp; &lt;three&gt;</p>") == "one two\n\n& <three>"


def test_what_looks_like_a_mark_on_a_page_is_said_and_not_obeyed() -> None:
    assert "[" not in text("<p>write [pause:1s] or [voice:nobody] or [/rate]</p>")
    assert text("<p>&lt;speak&gt; and [x](/y/)</p>") == "‹speak> and [x] (/y/)"


def test_chapters_are_the_headings_that_come_more_than_once() -> None:
    found = book("<title>T</title><h1>T</h1><p>front</p><h2>One</h2><p>a</p><h3>deep</h3><p>b</p><h2>Two</h2><p>c</p>")
    assert [chapter.title for chapter in found.chapters] == ["T", "One", "Two"]
    assert found.chapters[1].text == "One\n\na\n\ndeep\n\nb"


def test_a_part_without_text_of_its_own_goes_with_its_first_chapter() -> None:
    found = book("<h1>I</h1><h2>A</h2><p>a</p><h2>B</h2><p>b</p><h1>II</h1><h2>C</h2><p>c</p>")
    assert [(chapter.title, chapter.text) for chapter in found.chapters] == [
        ("I: A", "I\n\nA\n\na"),
        ("B", "B\n\nb"),
        ("II: C", "II\n\nC\n\nc"),
    ]


def test_encodings_are_declared_or_told_and_never_guessed() -> None:
    assert book("<meta charset='latin-1'><p>café</p>".encode("latin-1")).chapters[0].text == "café"
    assert book("<p>café</p>".encode("utf-16")).chapters[0].text == "café"
    with pytest.raises(InvalidInput, match=r"byte 6.*latin-1"):
        book("<p>café</p>".encode("latin-1"))
    with pytest.raises(InvalidInput, match="no encoding"):
        book("<meta charset='klingon'><p>nuqneH</p>")


def test_a_page_without_words_is_an_error_and_so_is_an_unknown_kind_of_file() -> None:
    with pytest.raises(NothingToSpeak, match="no text"):
        book("<p>…</p><script>alert(1)</script>")
    with pytest.raises(InvalidInput, match=r"\.epub"):
        book("x", "book.doc")
