// The audiobooks that the server reads in the background: GET /v1/jobs, asked again while one is not finished.
import { computed, signal } from "@preact/signals";
import { address } from "../address";
import { explain, type Problem } from "../problems";
import { saveBlob } from "../save";
import { get, key, postForm, send } from "../server";

export interface Job {
  id: string;
  state: "queued" | "running" | "paused" | "done" | "failed" | "cancelled";
  title: string;
  author: string;
  chapters: number;
  characters: number;
  format: string;
  captions: string | null;
  voice: string;
  duration_s: number | null;
  cover: boolean; // once it is done
  keep: boolean; // whether a correction speaks only what differs
  progress: { fraction: number; spoken_s: number; left_s: number | null; step: string } | null;
  error: { code: string; message: string } | null;
  notes: string[];
}

const POLL_MS = 1000;
export const jobs = signal<Job[] | null>(null); // newest first; null until they are known
export const problem = signal<Problem | null>(null);
const active = computed(() => jobs.value?.some(({ state }) => state === "queued" || state === "running") ?? true);

/** Keep the list up to date until the returned function is called. */
export function watchJobs(): () => void {
  let timer = 0;
  let stopped = false;
  const poll = async () => {
    await loadJobs();
    if (!stopped) timer = window.setTimeout(() => void poll(), active.value ? POLL_MS : 5 * POLL_MS);
  };
  void poll();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

export async function loadJobs(): Promise<void> {
  try {
    jobs.value = (await (await get("/v1/jobs")).json()).data;
    if (problem.value?.text === NOT_LOADED) problem.value = null;
  } catch (error) {
    const why = explain(error);
    if (why) problem.value = { ...why, text: NOT_LOADED, step: `${why.text} ${why.step}` };
  }
}

const NOT_LOADED = "The list of audiobooks could not be loaded.";

/** Do something with a job, then show the new list. */
async function act(action: () => Promise<unknown>): Promise<void> {
  problem.value = null;
  try {
    await action();
  } catch (error) {
    problem.value = explain(error);
  }
  await loadJobs();
}

export const pause = (job: Job) => act(() => send("POST", `/v1/jobs/${job.id}/cancel`));
export const resume = (job: Job) => act(() => send("POST", `/v1/jobs/${job.id}/resume`));
export const correct = (job: Job, form: FormData) => act(() => postForm(`/v1/jobs/${job.id}/again`, form));
export const remove = (job: Job) => act(() => send("DELETE", `/v1/jobs/${job.id}`));

/** Save a file of a finished job. A link cannot send a key, so with one the page fetches the file itself. */
export function download(job: Job, which: "audio" | "captions"): Promise<void> {
  return act(async () => {
    const path = `/v1/jobs/${job.id}/${which}`;
    if (!key.value) {
      const anchor = document.createElement("a");
      anchor.href = address(path);
      anchor.download = "";
      anchor.click();
      return;
    }
    const suffix = which === "audio" ? job.format : job.captions;
    saveBlob(await (await get(path)).blob(), `${job.title || "book"}.${suffix}`);
  });
}
