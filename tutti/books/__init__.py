"""Books: EPUB, HTML, Markdown and plain text become chapters of text that can be read aloud."""

from tutti.books.book import SUFFIXES, Book, Chapter, Cover, read_book

__all__ = ["SUFFIXES", "Book", "Chapter", "Cover", "read_book"]
