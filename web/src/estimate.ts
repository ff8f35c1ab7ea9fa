// How long a text will sound, before anybody has said it.
import type { Ask } from "./ask";
import { readable } from "./words";

const WIDE = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g; // a sign is a syllable or more
const LETTERS_PER_S = 14.5;
const SIGNS_PER_S = 4.5;
const PAUSE = /\[pause:\s*([\d.]+)\s*(ms|s)\s*\]|<break[^>]*time="([\d.]+)(ms|s)"/g;

export interface Estimate {
  characters: number;
  words: number;
  speech_s: number;
}

export function estimate(ask: Ask): Estimate {
  const plain = readable(ask.text);
  const signs = plain.match(WIDE)?.length ?? 0;
  const letters = plain.replace(WIDE, "").replace(/\s+/g, " ").trim().length;
  let pauses_s = 0;
  for (const [, mark, unit, tag, tagUnit] of ask.text.matchAll(PAUSE)) {
    pauses_s += Number(mark ?? tag) / ((unit ?? tagUnit) === "ms" ? 1000 : 1);
  }
  return {
    characters: ask.text.length,
    words: plain.split(/\s+/).filter(Boolean).length,
    speech_s: (letters / LETTERS_PER_S + signs / SIGNS_PER_S) / ask.speed + pauses_s,
  };
}

export function seconds(s: number): string {
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}
