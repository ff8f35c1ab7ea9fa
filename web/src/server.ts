// Calls to the server that the page came from, the only host it ever calls.
import { signal } from "@preact/signals";
import { address } from "./address";
import type { RequestBody } from "./request";

export interface Voice {
  id: string;
  label: string; // for people: Heart (American English, female)
  language: string;
  gender: string;
  grade: string;
  description?: string;
  needs?: string | null; // what must be installed on the server before it can speak
  access?: "private" | "shared"; // of an own voice
  yours?: boolean; // whether this key may delete it
}

/** An error response, with the server's message. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter_s: number | null = null,
  ) {
    super(message);
  }
}

const KEY_STORAGE = "tutti.key";
export const key = signal(localStorage.getItem(KEY_STORAGE) ?? "");

/** Why the key dialog is open: on request, because a call needs a key, or because its key was refused. */
export const keyDialog = signal<"closed" | "open" | "needed" | "refused">("closed");
let askedFor: Promise<boolean> | null = null;
let answer: (entered: boolean) => void = () => undefined;

export function saveKey(entered: string): void {
  key.value = entered.trim();
  if (key.value) localStorage.setItem(KEY_STORAGE, key.value);
  else localStorage.removeItem(KEY_STORAGE);
  closeKeyDialog(key.value !== "");
}

export function closeKeyDialog(entered = false): void {
  keyDialog.value = "closed";
  answer(entered);
}

/** Ask for a key, once for all calls that wait for it; false if none was entered. */
function askForKey(refused: boolean): Promise<boolean> {
  askedFor ??= new Promise<boolean>((resolve) => {
    answer = resolve;
    keyDialog.value = refused ? "refused" : "needed";
  }).finally(() => (askedFor = null));
  return askedFor;
}

export async function post(path: string, body: RequestBody | Record<string, string | null>, stop?: AbortSignal): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", body: JSON.stringify(body), headers, signal: stop ?? null });
}

export async function postForm(path: string, form: FormData): Promise<Response> {
  return call(path, { method: "POST", body: form });
}

export async function get(path: string, stop?: AbortSignal): Promise<Response> {
  return call(path, { signal: stop ?? null });
}

export async function send(method: "POST" | "DELETE", path: string): Promise<Response> {
  return call(path, { method });
}

const MAX_LOADING_MS = 300_000; // that a call waits for a server which loads its model
/** Whether a call waits until the server has loaded its model. */
export const loading = signal(false);

/** Call the server; where it needs a key, ask for one and call again, and wait for one that is still loading. */
async function call(path: string, options: RequestInit): Promise<Response> {
  const started = performance.now();
  for (;;) {
    const sentKey = key.value;
    const authorization: Record<string, string> = sentKey ? { Authorization: `Bearer ${sentKey}` } : {};
    const headers = { ...(options.headers as Record<string, string> | undefined), ...authorization };
    const response = await fetch(address(path), { ...options, headers, cache: "no-store" });
    loading.value = false;
    if (response.ok) return response;
    if (response.status !== 401) {
      const error = await serverError(response);
      if (error.code !== "not_ready" || performance.now() - started > MAX_LOADING_MS) throw error;
      loading.value = true;
      await pause(1000 * (error.retryAfter_s ?? 1), options.signal);
      continue;
    }
    const hasChanged = key.value !== sentKey; // entered while this call was on its way
    if (!hasChanged && !(await askForKey(sentKey !== ""))) throw await serverError(response);
    if (options.signal?.aborted) throw new DOMException("stopped", "AbortError");
  }
}

/** Wait; stop at once if the call is cancelled. */
function pause(ms: number, stop?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    stop?.addEventListener("abort", () => {
      clearTimeout(timer);
      loading.value = false;
      reject(new DOMException("stopped", "AbortError"));
    });
  });
}

async function serverError(response: Response): Promise<ServerError> {
  const content = await response.json().catch(() => null);
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ServerError(
    response.status,
    content?.error?.code ?? "",
    content?.error?.message ?? `the server answered ${response.status}`,
    Number.isFinite(after) ? after : null,
  );
}

/** The models of the server, without OpenAI's names for its default one. */
export async function fetchModels(): Promise<string[]> {
  const { data } = (await (await get("/v1/models")).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id).filter((id) => !/^(tts|gpt)-/.test(id));
}

/** The other voices, the most alike first. */
export async function fetchSimilar(id: string): Promise<string[]> {
  const { data } = (await (await get(`/v1/audio/voices/${id}/similar`)).json()) as { data: { id: string }[] };
  return data.map((voice) => voice.id);
}

export async function fetchVoices(): Promise<{ voices: Voice[]; default_voice: string }> {
  return (await get("/v1/audio/voices")).json();
}
