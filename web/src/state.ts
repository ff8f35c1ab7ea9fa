// State of the Speak view: the current request, the clips made of requests, and the clip on screen.
import { computed, effect, signal } from "@preact/signals";
import { MAX_VOICES, parseBlend, writeBlend } from "./blend";
import { Clip, toFloats } from "./clip";
import { removeClip, restoreClips, storeClip } from "./history-store";
import { player } from "./player";
import { explain, type Problem } from "./problems";
import { DEFAULT_REQUEST, parseLink, type SpeechRequest } from "./request";
import { fetchModels, fetchVoices, post, type Voice } from "./server";
import { synthesise } from "./synthesis";

const MAX_CLIPS = 12; // in the history

export const request = signal<SpeechRequest>(parseLink(location.hash) ?? DEFAULT_REQUEST);
export const voices = signal<Voice[]>([]);
export const models = signal<string[]>([]);
export const shownClip = signal<Clip | null>(null);
export const clips = signal<Clip[]>([]); // newest first
export const problem = signal<Problem | null>(null);
export const busy = computed(() => shownClip.value?.pending.value ?? false);

let running = new AbortController();
let failed: (() => void) | null = null; // what `retry` does again
const previews = new Map<string, Clip>();

export function updateRequest(fields: Partial<SpeechRequest>): void {
  request.value = { ...request.value, ...fields };
}

export async function loadVoices(): Promise<void> {
  try {
    const list = await fetchVoices();
    voices.value = list.voices;
    models.value = await fetchModels();
    const voice = parseBlend(list.default_voice);
    if (parseLink(location.hash) === null && voice.length) updateRequest({ voice });
  } catch (error) {
    fail(error, () => void loadVoices());
  }
}

/** Read the list of voices again, after one was added or deleted. */
export async function refreshVoices(): Promise<void> {
  voices.value = (await fetchVoices()).voices;
}

/** Show a problem, with what would try the same again. */
export function fail(error: unknown, again: () => void): void {
  problem.value = explain(error);
  failed = again;
}

export function retry(): void {
  problem.value = null;
  failed?.();
}

export async function loadHistory(): Promise<void> {
  const restored = await restoreClips(MAX_CLIPS);
  clips.value = [...clips.value, ...restored].slice(0, MAX_CLIPS);
}

export async function clearHistory(): Promise<void> {
  const ended = clips.value.filter((clip) => !clip.pending.value);
  await Promise.all(ended.map(removeClip)); // shown until then: after a reload they would be back
  clips.value = clips.value.filter((clip) => !ended.includes(clip));
}

export function displayName(id: string): string {
  return voices.value.find((voice) => voice.id === id)?.label.replace(/ \(.*/, "") ?? id;
}

/** Speak the current request and play it while it arrives. */
export function speak(): void {
  const clip = startClip(request.value);
  shownClip.value = clip;
  player.open(clip);
}

/** Start a request and return its clip. Cancels requests that are running, unless `parallel`. */
export function startClip(wanted: SpeechRequest, parallel = false): Clip {
  if (!parallel) stop();
  problem.value = null;
  const speakers = wanted.cast.map(({ name }) => name).join(", ");
  const clip = new Clip(wanted, speakers || writeBlend(wanted.voice));
  for (const oldest of clips.value.slice(MAX_CLIPS - 1)) void removeClip(oldest);
  clips.value = [clip, ...clips.value].slice(0, MAX_CLIPS);
  void synthesise(wanted, clip, running.signal).then(() => {
    if (clip.state.value === "whole") void storeClip(clip);
    if (clip.count.value === 0) forget(clip);
    if (!clip.problem.value) return;
    problem.value = clip.problem.value;
    failed = speak;
  });
  return clip;
}

/** Drop a clip that ended without any audio. */
function forget(clip: Clip): void {
  clips.value = clips.value.filter((other) => other !== clip);
  if (shownClip.value === clip) shownClip.value = null;
}

/** Pause the player and cancel running requests on the server. */
export function stop(): void {
  running.abort();
  running = new AbortController();
  player.play(false);
}

export function replay(clip: Clip): void {
  shownClip.value = clip;
  player.open(clip);
}

export function selectVoice(name: string): void {
  updateRequest({ voice: [{ name, weight: 1 }] });
}

export function addVoice(name: string): void {
  const { voice } = request.value;
  if (voice.length < MAX_VOICES && !voice.some((part) => part.name === name)) {
    updateRequest({ voice: [...voice, { name, weight: 1 }] });
  }
}

export function setWeight(name: string, weight: number): void {
  updateRequest({ voice: request.value.voice.map((part) => (part.name === name ? { name, weight } : part)) });
}

export function removeVoice(name: string): void {
  const voice = request.value.voice.filter((part) => part.name !== name);
  if (voice.length) updateRequest({ voice });
}

const GREETINGS: Record<string, (name: string) => string> = {
  es: (name) => `Hola, me llamo ${name}.`,
  fr: (name) => `Bonjour, je m'appelle ${name}.`,
  hi: () => "नमस्ते, आप कैसे हैं?",
  it: (name) => `Ciao, mi chiamo ${name}.`,
  ja: () => "こんにちは、はじめまして。",
  "pt-br": (name) => `Olá, eu me chamo ${name}.`,
  zh: () => "你好，很高兴认识你。",
};

/** Play a greeting in a voice. */
export function preview(voice: Voice): void {
  heard.value = null;
  const greeting = GREETINGS[voice.language] ?? ((speaker: string) => `Hello, I am ${speaker}.`);
  player.open(previewClip(voice, greeting(displayName(voice.id)))); // at once: it shows that sound is being made
}

/** A text in a voice; it is fetched once and kept. */
function previewClip(voice: Voice, text: string): Clip {
  const name = `${voice.id} ${text}`;
  const known = previews.get(name);
  if (known) return known;
  problem.value = null;
  const parts = [{ name: voice.id, weight: 1 }];
  const clip = new Clip({ ...DEFAULT_REQUEST, text, voice: parts }, `${displayName(voice.id)}, preview`);
  previews.set(name, clip);
  const body = { input: text, voice: voice.id, response_format: "pcm", stream: false };
  void post("/v1/audio/speech", body)
    .then((response) => response.arrayBuffer())
    .then((data) => {
      clip.append(toFloats(new Uint8Array(data)));
      clip.end("whole");
    })
    .catch((error: unknown) => {
      previews.delete(name);
      clip.end("failed");
      heard.value = null;
      fail(error, () => preview(voice));
    });
  return clip;
}

/** The voice that is heard while one sentence is spoken in many; null if none is. */
export const heard = signal<string | null>(null);
const AHEAD = 3; // voices that are asked for before their turn: they share a pass on the server

/** Play the first sentence of the text in one voice after the other, until something else is played or paused. */
export async function hearAll(list: Voice[]): Promise<void> {
  const text = (/^.{1,160}?[.!?](?=\s|$)/s.exec(request.value.text.trim())?.[0] ?? request.value.text.trim()).slice(0, 200);
  for (const [n, voice] of list.entries()) {
    const [clip] = list.slice(n, n + AHEAD).map((each) => previewClip(each, text));
    heard.value = voice.id;
    player.open(clip!);
    if (!(await playedToTheEnd(clip!))) break;
  }
  heard.value = null;
}

function playedToTheEnd(clip: Clip): Promise<boolean> {
  return new Promise((resolve) => {
    const dispose = effect(() => {
      const isOther = player.clip.value !== clip || heard.value === null;
      const hasEnded = !clip.pending.value && player.at_s.value >= clip.duration_s.value - 0.05;
      if (!isOther && player.playing.value) return;
      queueMicrotask(() => dispose());
      resolve(!isOther && hasEnded);
    });
  });
}
