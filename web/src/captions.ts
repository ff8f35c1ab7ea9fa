// Word times as subtitles: lines of 42 characters, two at most, cut where sentences end.
import type { Placed } from "./words";

const LINE = 42;
const LONGEST_S = 7;

interface Cue {
  start: number;
  end: number;
  lines: string[];
}

export function cues(text: string, words: Placed[]): Cue[] {
  const made: Cue[] = [];
  let open: Cue | null = null;
  words.forEach((word, n) => {
    const until = Math.max(word.to, words[n + 1]?.from ?? text.length);
    const tail = /^[^\s\w[<]*/.exec(text.slice(word.to, until))![0]; // its punctuation
    const shown = word.word + tail;
    if (open && !fits(open, shown, word.end)) open = null;
    if (!open) made.push((open = { start: word.start, end: word.end, lines: [""] }));
    const line = open.lines.at(-1)!;
    if (line && line.length + 1 + shown.length > LINE) open.lines.push(shown);
    else open.lines[open.lines.length - 1] = line ? `${line} ${shown}` : shown;
    open.end = word.end;
    if (/[.!?…。！？]["'”’)]*$/.test(shown)) open = null;
  });
  return made;
}

function fits(cue: Cue, shown: string, end: number): boolean {
  const onLastLine = cue.lines.at(-1)!.length + 1 + shown.length <= LINE;
  return end - cue.start <= LONGEST_S && (onLastLine || cue.lines.length < 2);
}

export function captions(kind: string, text: string, words: Placed[]): string {
  if (kind === "json") {
    return `${JSON.stringify({ words: words.map(({ word, start, end }) => ({ word, start, end })) }, null, 1)}\n`;
  }
  const dot = kind === "srt" ? "," : ".";
  const blocks = cues(text, words).map(({ start, end, lines }, n) => {
    const times = `${clock(start, dot)} --> ${clock(end, dot)}`;
    return `${kind === "srt" ? `${n + 1}\n` : ""}${times}\n${lines.join("\n")}\n`;
  });
  return `${kind === "vtt" ? "WEBVTT\n\n" : ""}${blocks.join("\n")}`;
}

function clock(s: number, dot: string): string {
  const ms = Math.round(s * 1000);
  const parts = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((part) =>
    String(Math.floor(part)).padStart(2, "0"),
  );
  return `${parts.join(":")}${dot}${String(ms % 1000).padStart(3, "0")}`;
}
