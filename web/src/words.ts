// Where the words of the server's times stand in the text that was typed.
export interface Word {
  word: string;
  start: number; // seconds
  end: number;
}

export interface Placed extends Word {
  from: number;
  to: number;
}

const MARKS = /\[\/?(?:pause|rate|pitch|voice|lang)[^\]]*\]|\]\(\/[^)]*\/\)|<[^>]*>/g;

/** The text with everything blanked that is not read aloud, each character in its place. */
export function readable(text: string): string {
  return text.replace(MARKS, (mark) => " ".repeat(mark.length));
}

/** The word's place at or after `from`; an empty one where the text does not have it. */
export function place(plain: string, word: Word, from: number): Placed {
  const at = plain.indexOf(word.word, from);
  return at < 0 ? { ...word, from, to: from } : { ...word, from: at, to: at + word.word.length };
}

/** The word heard at a time: the last that has begun; -1 before the first. */
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
