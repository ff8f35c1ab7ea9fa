// Words that this listener has corrected: stored in this browser and, with a key, on the server.
import { computed, effect, signal } from "@preact/signals";
import { writeBlend } from "../blend";
import { Clip, toFloats } from "../clip";
import { player } from "../player";
import { explain, type Problem } from "../problems";
import { DEFAULT_REQUEST } from "../request";
import { get, key, post } from "../server";
import { request, updateRequest } from "../state";

export interface Reading {
  phonemes: string;
  source: string; // "now", "as a verb", "British, in the dictionary"
}

type Words = Record<string, string>;

const LEXICON = "my-words"; // its id on the server
const KEPT = "tutti.words";
const UNSENT = "tutti.words.unsent";

export const words = computed<Words>(() => request.value.lexicon ?? {});
export const editedWord = signal<string | null>(null); // in the dialog; null: it is closed
export const readings = signal<Reading[]>([]);
export const wordProblem = signal<Problem | null>(null);

/** Changes that the server does not have yet; null removes a word. */
let unsent = stored<Record<string, string | null>>(UNSENT);

function stored<Table extends object>(name: string): Table {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "{}") as Table;
  } catch {
    return {} as Table;
  }
}

/** Take the words of this browser into the request, and those of the server as soon as there is a key. */
export function loadWords(): void {
  updateRequest({ lexicon: stored<Words>(KEPT) });
  effect(() => localStorage.setItem(KEPT, JSON.stringify(words.value)));
  effect(() => {
    if (key.value) void exchange();
  });
}

/** Keep how a word is said; null: as before. A word in lower case stands for it in any case. */
export function keepWord(written: string, said: string | null): void {
  const word = entryOf(written);
  const { [word]: _, ...others } = words.value;
  updateRequest({ lexicon: said === null ? others : { ...others, [word]: said } });
  unsent = { ...unsent, [word]: said };
  localStorage.setItem(UNSENT, JSON.stringify(unsent));
  void exchange();
}

/** The word as an entry: in lower case, unless capitals inside of it make it another word, as in US. */
export function entryOf(written: string): string {
  const word = written.trim().replace(/\s+/g, " ");
  return /^.\P{Lu}*$/u.test(word) ? word.toLowerCase() : word;
}

/** Send what has changed to the server, and take over the words that it has. */
async function exchange(): Promise<void> {
  if (!key.value) return;
  try {
    if (Object.keys(unsent).length) {
      const sent = unsent;
      await post(`/v1/lexicons/${LEXICON}/words`, sent);
      unsent = Object.fromEntries(Object.entries(unsent).filter(([word, said]) => sent[word] !== said));
      localStorage.setItem(UNSENT, JSON.stringify(unsent));
    }
    const { data } = (await (await get("/v1/lexicons")).json()) as { data: { id: string; yours: boolean }[] };
    if (!data.some(({ id, yours }) => id === LEXICON && yours)) return;
    const { entries } = (await (await get(`/v1/lexicons/${LEXICON}`)).json()) as { entries: Words };
    updateRequest({ lexicon: entries });
  } catch (error) {
    wordProblem.value = explain(error);
  }
}

/** Open the dialog for a word, and ask the server how it may be said. */
export async function editWord(word: string): Promise<void> {
  editedWord.value = word;
  await findReadings(word);
}

export async function findReadings(word: string): Promise<void> {
  readings.value = [];
  wordProblem.value = null;
  if (!word.trim()) return;
  const language = request.value.language && request.value.language !== "auto" ? request.value.language : voiceLanguage();
  try {
    const response = await post("/dev/readings", { word: word.trim(), language });
    const found = ((await response.json()) as { readings: Reading[] }).readings;
    if (editedWord.value !== null) readings.value = found;
  } catch (error) {
    wordProblem.value = explain(error);
  }
}

/** The letter of Kokoro's languages with which the chosen voice begins. */
function voiceLanguage(): string {
  const name = request.value.voice[0]?.name ?? "";
  return /^[abefhijpz][fm]_/.test(name) ? name[0]! : "a";
}

/** Let a word be heard as it would be said. */
export async function hearWord(word: string, said: string): Promise<void> {
  wordProblem.value = null;
  const clip = new Clip({ ...DEFAULT_REQUEST, text: word, voice: request.value.voice }, `${word}, ${said}`);
  player.open(clip); // at once: browsers play only what a click has begun
  const { language, voice } = request.value;
  const body = { input: word, voice: writeBlend(voice), lexicon: { [entryOf(word)]: said }, response_format: "pcm", stream: false };
  try {
    const response = await post("/v1/audio/speech", language ? { ...body, language } : body);
    clip.append(toFloats(new Uint8Array(await response.arrayBuffer())));
    clip.end("whole");
  } catch (error) {
    clip.end("failed");
    wordProblem.value = explain(error);
  }
}
