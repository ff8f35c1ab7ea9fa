// A dialogue is a text whose lines begin with names: Anna: Ready? Who speaks with which voice is its cast.
import { writeBlend } from "./blend";
import type { SpeechRequest } from "./request";

export interface Speaker {
  name: string;
  voice: string;
}

export interface Turn {
  speaker: string;
  text: string;
}

const NAMED_LINE = /^[ \t]*([^:\n]{1,40}):/gm;

/** The names that stand before a colon at the start of a line, each once. */
export function namesIn(text: string): string[] {
  return [...new Set([...text.matchAll(NAMED_LINE)].map(([, name]) => name!.trim()))].filter((name) => !/[[<]/.test(name));
}

/** The turns of a text; a line without the name of a speaker belongs to the turn before, the first ones to the voice. */
export function turns({ text, voice, cast }: SpeechRequest): Turn[] {
  const all: Turn[] = [];
  const known = new Map(cast.map(({ name }) => [key(name), name]));
  let open: Turn = { speaker: writeBlend(voice), text: "" };
  for (const line of text.split("\n")) {
    const [start, name] = line.match(/^[ \t]*([^:\n]{1,40}):/) ?? [];
    const speaker = name === undefined ? undefined : known.get(key(name));
    if (speaker !== undefined) all.push((open = { speaker, text: line.slice(start!.length) }));
    else if (all.length) open.text += `\n${line}`;
    else if (line.trim()) all.push((open = { ...open, text: line }));
  }
  return all.map((turn) => ({ ...turn, text: turn.text.trim() })).filter((turn) => turn.text);
}

/** Replace the names of speakers, which are shown and not spoken, by as many blanks. */
export function blankNames(text: string, cast: Speaker[]): string {
  const known = new Set(cast.map(({ name }) => key(name)));
  return text.replace(NAMED_LINE, (start, name: string) => (known.has(key(name)) ? " ".repeat(start.length) : start));
}

const key = (name: string) => name.trim().toLowerCase();
