// The file of a voice that was dropped or chosen: it is named, sent to the server, heard, and may be deleted again.
import { signal } from "@preact/signals";
import { explain, type Problem } from "../problems";
import { postForm, send, type Voice } from "../server";
import { displayName, fail, preview, refreshVoices, removeVoice, request, selectVoice, voices } from "../state";

export const VOICE_SUFFIXES = [".pt", ".pth", ".npy", ".bin", ".safetensors"];

export const voiceFile = signal<File | null>(null);
export const voiceProblem = signal<Problem | null>(null);

export function isVoiceFile(file: File): boolean {
  return VOICE_SUFFIXES.some((suffix) => file.name.toLowerCase().endsWith(suffix));
}

/** The name of a file as a voice may have it: lower-case letters, digits and _, the first a letter. */
export function suggestedName(file: File): string {
  const stem = file.name.toLowerCase().replace(/\..*$/, "");
  return stem.replace(/[^a-z0-9_]+/g, "_").replace(/^[^a-z]+/, "").slice(0, 40);
}

/** Whether a name says its language, as those of Kokoro do. */
export function saysLanguage(name: string): boolean {
  return /^[abefhijpz][fm]_/.test(name);
}

/** Send the voice, then choose it and let it be heard. */
export async function sendVoice(file: File, name: string, language: string, access: string): Promise<void> {
  const form = new FormData();
  form.set("name", name);
  if (language && !saysLanguage(name)) form.set("language", language);
  if (access) form.set("access", access);
  form.set("file", file, file.name);
  voiceProblem.value = null;
  try {
    await postForm("/v1/audio/voices", form);
    await refreshVoices();
  } catch (error) {
    voiceProblem.value = explain(error);
    return;
  }
  voiceFile.value = null;
  selectVoice(name);
  const added = voices.value.find((voice) => voice.id === name);
  if (added) preview(added);
}

export async function deleteVoice(voice: Voice): Promise<void> {
  if (!confirm(`Delete ${displayName(voice.id)} from this server?`)) return;
  try {
    await send("DELETE", `/v1/audio/voices/${voice.id}`);
    removeVoice(voice.id);
    if (request.value.voice.some((part) => part.name === voice.id)) selectVoice("af_heart");
    await refreshVoices();
  } catch (error) {
    fail(error, () => void deleteVoice(voice));
  }
}
