// Messages between the player and its worklet. Each play command has a number; reports on earlier ones are ignored.
export type PlayerMessage =
  | { type: "open"; clip: number }
  | { type: "piece"; samples: Float32Array }
  | { type: "whole" }
  | { type: "play"; playing: boolean; at: number | null; command: number };

export interface WorkletReport {
  clip: number;
  command: number;
  at: number; // the next sample to be played
  played: number; // samples since the clip was opened
  digest: number; // of those samples, to compare them with those sent
  gaps: number; // blocks not filled in time while audio was still arriving
  playing: boolean;
}
