// The file that was dropped or chosen, and its upload.
import { signal } from "@preact/signals";
import { writeBlend } from "../blend";
import { explain } from "../problems";
import { requestBody } from "../request";
import { postForm } from "../server";
import { request } from "../state";
import { loadJobs, problem } from "./jobs";

export const SUFFIXES = [".epub", ".docx", ".odt", ".fb2", ".pdf", ".html", ".md", ".txt"];
export const AUDIO_FORMATS = { m4b: "m4b, an audiobook with chapters", mp3: "mp3, plays everywhere", flac: "flac, lossless" };

export const file = signal<File | null>(null);
export const format = signal("m4b");
export const withCaptions = signal(false);
export const skipping = signal(false); // the copyright page and the notes
export const sending = signal(false);

/** Whether something that can become a book is being dragged. */
export function bookFiles(event: DragEvent): DataTransferItem[] {
  return [...(event.dataTransfer?.items ?? [])].filter((item) => item.kind === "file");
}

export function addFile(chosen: File): void {
  problem.value = null;
  file.value = chosen;
}

/** Send the file with the voice and expression of the Speak view. */
export async function upload(): Promise<void> {
  const book = file.value;
  if (!book) return;
  sending.value = true;
  problem.value = null;
  const { input: _, ...options } = requestBody({ ...request.value, cast: [] });
  const form = new FormData();
  for (const [name, value] of Object.entries(options)) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  form.set("voice", writeBlend(request.value.voice));
  form.set("format", format.value);
  if (withCaptions.value) form.set("captions", "srt");
  if (skipping.value) form.set("skip", "copyright,notes");
  form.set("file", book, book.name);
  try {
    await postForm("/v1/jobs", form);
    file.value = null;
    await loadJobs();
  } catch (error) {
    problem.value = explain(error);
  }
  sending.value = false;
}
