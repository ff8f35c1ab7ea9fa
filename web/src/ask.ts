// What is asked for: one value, from which the request, the link and the code snippets are made.
import { type Part, readBlend, writeBlend } from "./blend";

export interface Ask {
  text: string;
  voice: Part[];
  style: string; // the voice whose intonation is borrowed; "" = its own
  speed: number;
  pitch: number; // semitones
  pitch_range: number;
  energy: number; // decibels
  emotion: string;
}

export type Body = Record<string, string | number | boolean>;

/** The limits of docs/speaking.md, and what is left out of a request. */
export const MANNER = {
  speed: { low: 0.25, high: 4, step: 0.05, usual: 1 },
  pitch: { low: -12, high: 12, step: 0.5, usual: 0 },
  pitch_range: { low: 0, high: 2, step: 0.05, usual: 1 },
  energy: { low: -3, high: 3, step: 0.5, usual: 0 },
} as const;
export type Manner = keyof typeof MANNER;
export const MANNERS = Object.keys(MANNER) as Manner[];

export const EMOTIONS = ["neutral", "calm", "happy", "excited", "sad", "angry", "serious", "gentle"];
export const FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm", "mulaw", "alaw"];

export const OPENING: Ask = {
  text: "All voices, one pass. Every listener hears the first word early, and nobody hears a gap.",
  voice: [{ name: "af_heart", weight: 1 }],
  style: "",
  speed: 1,
  pitch: 0,
  pitch_range: 1,
  energy: 0,
  emotion: "neutral",
};

/** The body of the request, less whatever is as it would be anyway. */
export function body(ask: Ask): Body {
  const made: Body = { input: ask.text, voice: writeBlend(ask.voice) };
  if (ask.style) made.style = ask.style;
  if (ask.emotion !== "neutral") made.emotion = ask.emotion;
  for (const name of MANNERS) if (ask[name] !== MANNER[name].usual) made[name] = ask[name];
  return made;
}

/** The request as the part of an address that no server is ever sent. */
export function link(ask: Ask): string {
  const told = Object.entries(body(ask)).map(([name, value]) => [name, String(value)]);
  return `#speak?${new URLSearchParams(told)}`;
}

/** The request in a link; what it does not tell is as usual, what is wrong in it is left out. */
export function fromLink(fragment: string): Ask | null {
  const [view, told] = fragment.replace(/^#/, "").split("?", 2);
  if (view !== "speak" || told === undefined) return null;
  const given = new URLSearchParams(told);
  const ask: Ask = { ...OPENING, text: given.get("input") ?? "", style: given.get("style") ?? "" };
  const voice = readBlend(given.get("voice") ?? "");
  if (voice.length) ask.voice = voice;
  const emotion = given.get("emotion") ?? "";
  if (EMOTIONS.includes(emotion)) ask.emotion = emotion;
  for (const name of MANNERS) {
    const value = Number(given.get(name) ?? Number.NaN);
    const { low, high } = MANNER[name];
    if (value >= low && value <= high) ask[name] = value;
  }
  return ask;
}
