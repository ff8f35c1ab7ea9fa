// Find the words of the server's word times in the text.
export interface Word {
  word: string;
  start: number; // seconds
  end: number;
}

export interface PlacedWord extends Word {
  from: number; // in the text
  to: number;
}

const MARKS = /\[\/?(?:pause|rate|pitch|voice|lang)[^\]]*\]|\]\(\/[^)]*\/\)|<[^>]*>/g;

/** Replace marks and tags, which are not spoken, by blanks of the same length. */
export function blankMarks(text: string): string {
  return text.replace(MARKS, (mark) => " ".repeat(mark.length));
}

/** Locate a word at or after `from`; the position is empty if the text does not contain it. */
export function placeWord(plain: string, word: Word, from: number): PlacedWord {
  const at = plain.indexOf(word.word, from);
  return at < 0 ? { ...word, from, to: from } : { ...word, from: at, to: at + word.word.length };
}

/** The index of the word spoken at a time: the last that has begun; -1 before the first. */
export function wordAt(words: Word[], s: number): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle]!.start <= s) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
