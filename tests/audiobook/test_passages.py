"""Passages of a chapter: a block of code that is cut stays code, and the text after it is spoken."""

from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import passages
from tutti.text.clean import clean

CODE = "```python\n" + "secret = 1\n\nother = 2\n\n" * 200 + "```"


def test_code_over_several_passages_is_announced_once_and_nothing_else_is_lost() -> None:
    chapters = [Chapter("One", f"Look at this.\n\n{CODE}\n\nThat was it. {'And on it goes. ' * 40}")]
    plan = list(passages(chapters))
    assert len(plan) > 4
    spoken = " ".join(clean(passage.text(chapters)).aligned.text for passage in plan).split()
    assert spoken[:9] == ["Look", "at", "this.", "Code", "block", "in", "Python.", "That", "was"]
    assert "secret" not in spoken
    assert spoken.count("goes.") == 40


def test_break_tags_count_as_pauses_of_a_passage() -> None:
    chapters = [Chapter("One", 'wait <break time="50s"/> ' * 20)]
    assert len(list(passages(chapters))) >= 10
