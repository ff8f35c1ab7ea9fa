// Calls to the server that the page came from, the only host it ever calls.
import { signal } from "@preact/signals";
import type { RequestBody } from "./request";

export interface Voice {
  id: string;
  name: string;
  language: string;
  gender: string;
  grade: string;
}

/** An error response, with the server's message. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const KEY_STORAGE = "tutti.key";
export const key = signal(localStorage.getItem(KEY_STORAGE) ?? "");
export const keyDialogOpen = signal(false);

export function saveKey(entered: string): void {
  key.value = entered.trim();
  if (key.value) localStorage.setItem(KEY_STORAGE, key.value);
  else localStorage.removeItem(KEY_STORAGE);
  keyDialogOpen.value = false;
}

export async function post(path: string, body: RequestBody, stop?: AbortSignal): Promise<Response> {
  return call(path, { method: "POST", body: JSON.stringify(body), signal: stop ?? null });
}

export async function get(path: string, stop?: AbortSignal): Promise<Response> {
  return call(path, { signal: stop ?? null });
}

async function call(path: string, options: RequestInit): Promise<Response> {
  const headers: Record<string, string> = {};
  if (options.body) headers["Content-Type"] = "application/json";
  if (key.value) headers.Authorization = `Bearer ${key.value}`;
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  if (response.status === 401) keyDialogOpen.value = true;
  const content = await response.json().catch(() => null);
  throw new ServerError(
    response.status,
    content?.error?.code ?? "",
    content?.error?.message ?? `the server answered ${response.status}`,
  );
}

export async function fetchVoices(): Promise<{ voices: Voice[]; default_voice: string }> {
  return (await get("/v1/audio/voices")).json();
}

/** The error as a sentence; empty for a cancelled request. */
export function errorText(error: unknown): string {
  if (error instanceof DOMException && error.name === "AbortError") return "";
  if (error instanceof ServerError) return error.message;
  return error instanceof TypeError ? "The server does not answer." : String(error);
}
