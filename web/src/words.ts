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

// Marks, SSML tags, and both sides of a word with its pronunciation: [word](/ipa/).
const MARKS =
  /\[(?:(?:pause|rate|pitch|volume|emphasis|voice|lang|emotion):[^[\]\n]*|\/(?:rate|pitch|volume|emphasis|voice|lang|emotion))\]|\[(?=[^[\]\n]*\]\(\/)|\]\(\/[^)\n]*\/\)|<!--[^]*?-->|<[/?]?[a-zA-Z][^<>]*>/gi;

/** Replace marks and tags, which are not spoken, by as many blanks, so that positions stay. */
export function blankMarks(text: string, blank = " "): string {
  return text.replace(MARKS, (mark) => blank.repeat(mark.length));
}

/** The text without its marks and tags, as it is read. */
export function withoutMarks(text: string): string {
  return text.replace(MARKS, "");
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
