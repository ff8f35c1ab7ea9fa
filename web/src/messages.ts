// What the player and its worklet tell each other. A turn is something that somebody pressed: what the worklet tells of
// an earlier one is old news.
export type FromPlayer =
  | { type: "open"; clip: number }
  | { type: "piece"; samples: Float32Array }
  | { type: "whole" }
  | { type: "play"; playing: boolean; at: number | null; turn: number };

export interface FromWorklet {
  clip: number;
  turn: number;
  at: number; // the next sample to be heard
  heard: number; // samples handed to the ear since the clip was opened
  digest: number; // of those samples, so that what was heard can be held against what was sent
  gaps: number; // blocks that came up short while speech was still being made
  playing: boolean;
}
