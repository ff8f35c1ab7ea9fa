// What the Speak view works on: the request, the clips made of it, who is heard now.
import { computed, signal } from "@preact/signals";
import { type Ask, fromLink, OPENING } from "./ask";
import { MOST_PARTS, readBlend, writeBlend } from "./blend";
import { Clip, floats } from "./clip";
import { player } from "./player";
import { post, type Voice, voices, worded } from "./server";
import { speak } from "./speaking";

const MOST_PAST = 12;

export const ask = signal<Ask>(fromLink(location.hash) ?? OPENING);
export const cast = signal<Voice[]>([]);
export const shown = signal<Clip | null>(null);
export const past = signal<Clip[]>([]);
export const trouble = signal("");
export const busy = computed(() => shown.value?.coming.value ?? false);

let underWay = new AbortController();
const previews = new Map<string, Clip>();

export function change(some: Partial<Ask>): void {
  ask.value = { ...ask.value, ...some };
}

export async function meet(): Promise<void> {
  try {
    const known = await voices();
    cast.value = known.voices;
    const voice = readBlend(known.default_voice);
    if (fromLink(location.hash) === null && voice.length) change({ voice });
  } catch (error) {
    trouble.value = worded(error);
  }
}

function byName(): Record<string, Voice> {
  return Object.fromEntries(cast.value.map((voice) => [voice.id, voice]));
}

export function titled(name: string): string {
  return byName()[name]?.name.replace(/ \(.*/, "") ?? name;
}

/** Says what is asked for now, heard while it is made. */
export function speakNow(): void {
  const clip = made(ask.value);
  shown.value = clip;
  player.open(clip);
}

/** A clip of this request, on its way; whatever was under way is stopped. */
export function made(asked: Ask, beside = false): Clip {
  if (!beside) stop();
  trouble.value = "";
  const clip = new Clip(asked, writeBlend(asked.voice));
  past.value = [clip, ...past.value].slice(0, MOST_PAST);
  void speak(asked, clip, underWay.signal).then(() => {
    if (clip.error.value) trouble.value = clip.error.value;
  });
  return clip;
}

/** Silence here, and no more work for it there. */
export function stop(): void {
  underWay.abort();
  underWay = new AbortController();
  player.play(false);
}

export function again(clip: Clip): void {
  shown.value = clip;
  player.open(clip);
}

export function choose(name: string): void {
  change({ voice: [{ name, weight: 1 }] });
}

export function blendIn(name: string): void {
  const { voice } = ask.value;
  if (voice.length < MOST_PARTS && !voice.some((part) => part.name === name)) {
    change({ voice: [...voice, { name, weight: 1 }] });
  }
}

export function weigh(name: string, weight: number): void {
  change({ voice: ask.value.voice.map((part) => (part.name === name ? { name, weight } : part)) });
}

export function takeOut(name: string): void {
  const voice = ask.value.voice.filter((part) => part.name !== name);
  if (voice.length) change({ voice });
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

/** A greeting in a voice: made once, then kept. */
export async function preview(voice: Voice): Promise<void> {
  player.wake();
  let clip = previews.get(voice.id);
  if (!clip) {
    trouble.value = "";
    const name = titled(voice.id);
    const text = (GREETINGS[voice.language] ?? ((who: string) => `Hello, I am ${who}.`))(name);
    clip = new Clip({ ...OPENING, text, voice: [{ name: voice.id, weight: 1 }] }, `${name}, a greeting`);
    try {
      const asked = { input: text, voice: voice.id, response_format: "pcm", stream: false };
      const reply = await post("/v1/audio/speech", asked);
      clip.append(floats(new Uint8Array(await reply.arrayBuffer())));
      clip.end("whole");
      previews.set(voice.id, clip);
    } catch (error) {
      trouble.value = worded(error);
      return;
    }
  }
  player.open(clip);
}
