// What the player and its worklet tell each other.
export type FromPlayer =
  | { type: "open"; clip: number; playing: boolean }
  | { type: "piece"; samples: Float32Array }
  | { type: "whole" }
  | { type: "play"; playing: boolean }
  | { type: "seek"; at: number };

export interface FromWorklet {
  clip: number;
  at: number; // the next sample to be heard
  heard: number; // samples handed to the ear since the clip was opened
  digest: number; // of those samples, so that what was heard can be held against what was sent
  gaps: number; // blocks that came up short while speech was still being made
  playing: boolean;
}
