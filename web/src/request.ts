// One speech request: the request body, the link and the code snippets are made from this value.
import { type Speaker, type Turn, turns } from "./dialogue";
import { parseBlend, type VoiceWeight, writeBlend } from "./blend";

export interface SpeechRequest {
  text: string;
  voice: VoiceWeight[];
  style: string; // the voice whose prosody is used; "" = its own
  speed: number;
  pitch: number; // semitones
  pitch_range: number;
  energy: number; // decibels
  emotion: string;
  model?: string; // of the server; none = its default
  cast: Speaker[]; // of a dialogue; none = one voice for all
  language?: string; // of the text; none = that of the voice
  code_blocks?: string; // none = as the server does
  lexicon?: Record<string, string>; // words of this browser; no part of a link
}

export type RequestBody = Record<string, string | number | boolean | Turn[] | Record<string, string>>;

/** The limits of docs/speaking.md; a default value is left out of the request. */
export const PROSODY = {
  speed: { low: 0.25, high: 4, step: 0.05, default: 1 },
  pitch: { low: -12, high: 12, step: 0.5, default: 0 },
  pitch_range: { low: 0, high: 2, step: 0.05, default: 1 },
  energy: { low: -3, high: 3, step: 0.5, default: 0 },
} as const;
export type ProsodyName = keyof typeof PROSODY;
export const PROSODY_NAMES = Object.keys(PROSODY) as ProsodyName[];

export const EMOTIONS = ["neutral", "calm", "happy", "excited", "sad", "angry", "serious", "gentle"];
export const CODE_BLOCKS = { announce: "named", read: "read aloud", skip: "left out" };
export const FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm", "mulaw", "alaw"];

export const DEFAULT_REQUEST: SpeechRequest = {
  // The first sentence is long enough to be spoken before the others.
  text: "This voice was made on your own server. You hear the first sentence while the next one is being made. Every word lights up when its turn comes.",
  voice: [{ name: "af_heart", weight: 1 }],
  style: "",
  speed: 1,
  pitch: 0,
  pitch_range: 1,
  energy: 0,
  emotion: "neutral",
  cast: [],
};

/** The route that takes the body. */
export function requestPath(request: SpeechRequest): string {
  return request.cast.length ? "/v1/audio/dialogue" : "/v1/audio/speech";
}

/** The body of the request, without default values: a dialogue if it has a cast. */
export function requestBody(request: SpeechRequest): RequestBody {
  if (!request.cast.length) return { input: request.text, voice: writeBlend(request.voice), ...expression(request) };
  const named = request.cast.filter(({ name }) => name.trim());
  const cast = Object.fromEntries(named.map(({ name, voice }) => [name.trim(), voice]));
  return { cast, turns: turns(request), ...expression(request) };
}

/** How it is spoken, without default values. */
function expression(request: SpeechRequest): RequestBody {
  const body: RequestBody = {};
  if (request.style) body.style = request.style;
  if (request.emotion !== "neutral") body.emotion = request.emotion;
  if (request.model) body.model = request.model;
  if (request.language) body.language = request.language;
  if (request.code_blocks) body.code_blocks = request.code_blocks;
  if (Object.keys(request.lexicon ?? {}).length) body.lexicon = request.lexicon!;
  for (const name of PROSODY_NAMES) if (request[name] !== PROSODY[name].default) body[name] = request[name];
  return body;
}

/** The request as a URL fragment, which browsers do not send to servers. */
export function requestLink(request: SpeechRequest): string {
  const { lexicon: _, ...body } = requestBody({ ...request, cast: [] });
  const fields = Object.entries(body).map(([name, value]) => [name, String(value)]);
  for (const { name, voice } of request.cast) fields.push(["cast", `${voice} ${name}`]);
  return `#speak?${new URLSearchParams(fields)}`;
}

/** The request of a link, with defaults for what is missing or invalid; null if the fragment holds none. */
export function parseLink(fragment: string): SpeechRequest | null {
  const [view, query] = fragment.replace(/^#/, "").split("?", 2);
  if (view !== "speak" || query === undefined) return null;
  const fields = new URLSearchParams(query);
  const request: SpeechRequest = { ...DEFAULT_REQUEST, text: fields.get("input") ?? "", style: fields.get("style") ?? "" };
  const voice = parseBlend(fields.get("voice") ?? "");
  if (voice.length) request.voice = voice;
  const emotion = fields.get("emotion") ?? "";
  if (EMOTIONS.includes(emotion)) request.emotion = emotion;
  for (const name of ["model", "language", "code_blocks"] as const) {
    const value = fields.get(name);
    if (value) request[name] = value;
  }
  request.cast = fields.getAll("cast").map((each) => {
    const [speaker, ...name] = each.split(" ");
    return { voice: speaker!, name: name.join(" ") };
  });
  for (const name of PROSODY_NAMES) {
    const value = Number(fields.get(name) ?? Number.NaN);
    const { low, high } = PROSODY[name];
    if (value >= low && value <= high) request[name] = value;
  }
  return request;
}
