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
export const keeping = signal(false); // what was spoken, for corrections
export const sending = signal(false);
/** What overrides that of the book; "" leaves it. */
export const ABOUT = { title: "Title", author: "Author", series: "Series" } as const;
export type AboutName = keyof typeof ABOUT;
const NOTHING: Record<AboutName, string> = { title: "", author: "", series: "" };
export const about = signal(NOTHING);
export const bookWords = signal(""); // how words of this book are said: a line for each

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
  const lexicon = { ...request.value.lexicon, ...parseWords(bookWords.value) };
  sending.value = true;
  problem.value = null;
  const { input: _, ...options } = requestBody({ ...request.value, cast: [], lexicon });
  const form = new FormData();
  for (const [name, value] of Object.entries(options)) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  form.set("voice", writeBlend(request.value.voice));
  form.set("format", format.value);
  if (withCaptions.value) form.set("captions", "srt");
  if (keeping.value) form.set("keep", "true");
  if (skipping.value) form.set("skip", "copyright,notes");
  for (const [name, text] of Object.entries(about.value)) if (text.trim()) form.set(name, text.trim());
  form.set("file", book, book.name);
  try {
    await postForm("/v1/jobs", form);
    file.value = null;
    about.value = NOTHING;
    bookWords.value = "";
    await loadJobs();
  } catch (error) {
    problem.value = explain(error);
  }
  sending.value = false;
}

/** The entries of "word = how it is said", a line for each; the server refuses one that says nothing. */
export function parseWords(lines: string): Record<string, string> {
  const filled = lines.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    filled.map((line) => {
      const [word, ...said] = line.split("=");
      return [word!.trim(), said.join("=").trim()];
    }),
  );
}
