// Errors in the words of the page: what happened, and what to do about it here.
import { ServerError } from "./server";

export interface Problem {
  text: string;
  step: string; // what to do next; "" if the text says it
  detail: string; // the server's own words, where they add something
  retry: boolean; // whether the same request may work later
}

type Words = Omit<Problem, "detail"> & { detail?: boolean };
const BUSY = { text: "The server is busy with other requests.", retry: true };

const BY_CODE: Record<string, Words | ((error: ServerError) => Words)> = {
  queue_full: (error) => ({ ...BUSY, step: tryAgain(error.retryAfter_s) }),
  rate_limited: (error) => ({
    text: "You have sent more requests than this server allows.",
    step: tryAgain(error.retryAfter_s),
    retry: true,
  }),
  device_full: { ...BUSY, step: "Try again in a moment." },
  deadline_exceeded: { text: "The server took too long.", step: "Try again, or try a shorter text.", retry: true },
  worker_lost: { text: "The server restarted its model.", step: "Try again in a moment.", retry: true },
  not_ready: { text: "The server is still loading its model.", step: "Try again in a few seconds.", retry: true },
  draining: { text: "The server is shutting down.", step: "Try again when it is back.", retry: true },
  invalid_api_key: {
    text: "This server needs an API key.",
    step: "Press the key at the top right to enter one.",
    retry: true,
  },
  nothing_to_speak: {
    text: "There is nothing to say in this text.",
    step: "Write some words in the language of the voice, or choose a voice of the text's language.",
    retry: false,
    detail: true,
  },
  voice_not_found: {
    text: "This server does not know that voice.",
    step: "Choose one from the list of voices.",
    retry: false,
    detail: true,
  },
  unknown_language: {
    text: "There is no voice for that language.",
    step: "Choose a voice from the list.",
    retry: false,
    detail: true,
  },
  missing_extra: {
    text: "This server cannot speak that language yet.",
    step: "Choose a voice without the mark “not installed”, or install what is missing on the server.",
    retry: false,
    detail: true,
  },
  too_large: {
    text: "This is too long to be spoken at once.",
    step: "Drop it as a file, and it becomes an audiobook.",
    retry: false,
    detail: true,
  },
  g2p_unavailable: {
    text: "The server's pronunciation service does not answer.",
    step: "Try again in a moment.",
    retry: true,
  },
  model_failed: { text: "The model failed on this text.", step: "Change the text a little and try again.", retry: true },
  storage_full: {
    text: "The server's disk is full.",
    step: "Delete finished audiobooks, then try again.",
    retry: true,
    detail: true,
  },
  too_many_jobs: {
    text: "This server keeps no more audiobooks.",
    step: "Delete some that are finished, then try again.",
    retry: true,
    detail: true,
  },
  unsupported_book: { text: "This file cannot be read.", step: "", retry: false, detail: true },
};

/** The problem in words; null for a request that was cancelled. */
export function explain(error: unknown): Problem | null {
  if (error instanceof DOMException && error.name === "AbortError") return null;
  if (!(error instanceof ServerError)) {
    const lost = error instanceof TypeError;
    return {
      text: lost ? "The server does not answer." : "The page failed.",
      step: lost ? "Check that it is running and that you are connected, then try again." : "Reload the page.",
      detail: lost ? "" : String(error),
      retry: lost,
    };
  }
  const known = BY_CODE[error.code];
  if (known) {
    const { detail, ...words } = typeof known === "function" ? known(error) : known;
    return { ...words, detail: detail ? sentence(error.message) : "" };
  }
  if (error.status >= 500) {
    const step = "Try again; if it happens again, look into the server's log.";
    return { text: "The server failed.", step, detail: sentence(error.message), retry: true };
  }
  return { text: sentence(error.message), step: "", detail: "", retry: false };
}

function tryAgain(after_s: number | null): string {
  if (!after_s) return "Try again in a moment.";
  return `Try again in ${after_s} ${after_s === 1 ? "second" : "seconds"}.`;
}

function sentence(message: string): string {
  const whole = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
