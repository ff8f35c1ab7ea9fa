// The server that the page came from: the only one it ever calls.
import { signal } from "@preact/signals";
import type { Body } from "./ask";

export interface Voice {
  id: string;
  name: string;
  language: string;
  gender: string;
  grade: string;
}

/** A refusal in the server's own words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const KEPT = "tutti.key";
export const key = signal(localStorage.getItem(KEPT) ?? "");
export const keyWanted = signal(false);

export function keepKey(given: string): void {
  key.value = given.trim();
  if (key.value) localStorage.setItem(KEPT, key.value);
  else localStorage.removeItem(KEPT);
  keyWanted.value = false;
}

export async function post(path: string, body: Body, stop?: AbortSignal): Promise<Response> {
  return call(path, { method: "POST", body: JSON.stringify(body), signal: stop ?? null });
}

export async function get(path: string, stop?: AbortSignal): Promise<Response> {
  return call(path, { signal: stop ?? null });
}

async function call(path: string, how: RequestInit): Promise<Response> {
  const headers: Record<string, string> = {};
  if (how.body) headers["Content-Type"] = "application/json";
  if (key.value) headers.Authorization = `Bearer ${key.value}`;
  const reply = await fetch(path, { ...how, headers, cache: "no-store" });
  if (reply.ok) return reply;
  if (reply.status === 401) keyWanted.value = true;
  const told = await reply.json().catch(() => null);
  throw new Refused(
    reply.status,
    told?.error?.code ?? "",
    told?.error?.message ?? `the server answered ${reply.status}`,
  );
}

export async function voices(): Promise<{ voices: Voice[]; default_voice: string }> {
  return (await get("/v1/audio/voices")).json();
}

/** What went wrong, in a sentence; nothing where somebody merely stopped. */
export function worded(error: unknown): string {
  if (error instanceof DOMException && error.name === "AbortError") return "";
  if (error instanceof Refused) return error.message;
  return error instanceof TypeError ? "The server does not answer." : String(error);
}
