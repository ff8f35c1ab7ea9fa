// What a listener has chosen: the book that is open, where each was left, and the speed. Kept in this browser.
import { signal } from "@preact/signals";
import { get, key } from "../server";
import type { Job } from "./jobs";

export interface Chapter {
  startTime: number; // seconds
  title: string;
}

const PLACES = "tutti.places"; // seconds by the id of a job
const SPEED = "tutti.listening-speed";
export const SPEEDS = [0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];
export const open = signal<string | null>(null); // the id of a job
export const speed = signal(Number(localStorage.getItem(SPEED)) || 1);

/** The address of a file of a job. Elements that play or show it send no header, so the key is in its query. */
export function fileUrl(job: Job, which: "audio" | "cover"): string {
  return `/v1/jobs/${job.id}/${which}${key.value ? `?api_key=${encodeURIComponent(key.value)}` : ""}`;
}

export async function loadChapters(job: Job): Promise<Chapter[]> {
  return (await (await get(`/v1/jobs/${job.id}/chapters`)).json()).chapters;
}

/** The number of the chapter at a place, -1 before the first one. */
export function chapterAt(chapters: Chapter[], at: number): number {
  return chapters.filter(({ startTime }) => startTime <= at + 0.05).length - 1;
}

function places(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(PLACES) ?? "{}");
  } catch {
    return {};
  }
}

export function placeOf(id: string): number {
  return places()[id] ?? 0;
}

/** Remember where a book was left; a book that was heard to its end begins anew. */
export function savePlace(id: string, at: number): void {
  const { [id]: _, ...others } = places();
  localStorage.setItem(PLACES, JSON.stringify(at > 1 ? { ...others, [id]: Math.round(1000 * at) / 1000 } : others));
}

export function setSpeed(value: number): void {
  speed.value = value;
  localStorage.setItem(SPEED, String(value));
}
