// Messages between the player and its speaker. Each play command has a number; reports on earlier ones are ignored.
export type PlayerMessage =
  | { type: "open"; clip: number }
  | { type: "piece"; samples: Float32Array }
  | { type: "whole" }
  | { type: "play"; playing: boolean; at: number | null; command: number };

export const BLOCK = 128; // samples: what Web Audio asks for at a time, and the unit of gaps

export interface SpeakerReport {
  clip: number;
  command: number;
  at: number; // the next sample to be played
  played: number; // samples since the clip was opened
  digest: number; // of those samples, to compare them with those sent
  gaps: number; // blocks not filled in time while audio was still arriving
  starved: boolean; // nothing left to play, and the clip is not complete
  playing: boolean;
}

/** Add samples to the digest of those before them. */
export function addToDigest(digest: number, samples: Float32Array): number {
  for (const sample of samples) digest = (Math.imul(digest, 31) + Math.round(sample * 32768)) | 0;
  return digest;
}
