// Estimate the length of the speech from the text.
import type { SpeechRequest } from "./request";
import { blankNames } from "./dialogue";
import { blankMarks } from "./words";

const WIDE_CHARACTER = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g; // one character is a syllable or more
const LETTERS_PER_S = 14.5;
const WIDE_PER_S = 4.5;
const SENTENCE_S = 0.3; // of silence after a sentence, and where a mark changes the manner of speaking
const BREAK = /[.!?…:;]+(?=\s|$)|\[(?:voice|lang|emotion):/g;
const PAUSE = /\[pause:\s*([\d.]+)\s*(ms|s)\s*\]|<break[^>]*time="([\d.]+)(ms|s)"/g;

export interface Estimate {
  characters: number;
  words: number;
  speech_s: number;
}

export function estimate(request: SpeechRequest): Estimate {
  const plain = blankNames(blankMarks(request.text), request.cast);
  const wide = plain.match(WIDE_CHARACTER)?.length ?? 0;
  const letters = plain.replace(WIDE_CHARACTER, "").replace(/\s+/g, " ").trim().length;
  let pauses_s = SENTENCE_S * Math.max(0, (request.text.match(BREAK)?.length ?? 0) - 1);
  for (const [, mark, unit, tag, tagUnit] of request.text.matchAll(PAUSE)) {
    pauses_s += Number(mark ?? tag) / ((unit ?? tagUnit) === "ms" ? 1000 : 1);
  }
  return {
    characters: request.text.length,
    words: plain.split(/\s+/).filter(Boolean).length,
    speech_s: (letters / LETTERS_PER_S + wide / WIDE_PER_S) / request.speed + pauses_s,
  };
}
