// Captions from word times: at most two lines of 42 characters, split where sentences end.
import type { PlacedWord } from "./words";

const LINE_LENGTH = 42; // characters
const MAX_CUE_S = 7;

interface Cue {
  start: number;
  end: number;
  lines: string[];
}

export function cues(text: string, words: PlacedWord[]): Cue[] {
  const all: Cue[] = [];
  let open: Cue | null = null;
  words.forEach((word, n) => {
    const until = Math.max(word.to, words[n + 1]?.from ?? text.length);
    const tail = /^[^\s\w[<]*/.exec(text.slice(word.to, until))![0]; // punctuation after the word
    const token = word.word + tail;
    if (open && !fits(open, token, word.end)) open = null;
    if (!open) all.push((open = { start: word.start, end: word.end, lines: [""] }));
    const line = open.lines.at(-1)!;
    if (line && line.length + 1 + token.length > LINE_LENGTH) open.lines.push(token);
    else open.lines[open.lines.length - 1] = line ? `${line} ${token}` : token;
    open.end = word.end;
    if (/[.!?…。！？]["'”’)]*$/.test(token)) open = null;
  });
  return all;
}

function fits(cue: Cue, token: string, end: number): boolean {
  const onLastLine = cue.lines.at(-1)!.length + 1 + token.length <= LINE_LENGTH;
  return end - cue.start <= MAX_CUE_S && (onLastLine || cue.lines.length < 2);
}

export function captions(kind: string, text: string, words: PlacedWord[]): string {
  if (kind === "json") {
    return `${JSON.stringify({ words: words.map(({ word, start, end }) => ({ word, start, end })) }, null, 1)}\n`;
  }
  const dot = kind === "srt" ? "," : ".";
  const blocks = cues(text, words).map(({ start, end, lines }, n) => {
    const times = `${timestamp(start, dot)} --> ${timestamp(end, dot)}`;
    return `${kind === "srt" ? `${n + 1}\n` : ""}${times}\n${lines.join("\n")}\n`;
  });
  return `${kind === "vtt" ? "WEBVTT\n\n" : ""}${blocks.join("\n")}`;
}

function timestamp(s: number, dot: string): string {
  const ms = Math.round(s * 1000);
  const parts = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((part) =>
    String(Math.floor(part)).padStart(2, "0"),
  );
  return `${parts.join(":")}${dot}${String(ms % 1000).padStart(3, "0")}`;
}
