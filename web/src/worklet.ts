// Audio output: holds the clip, plays it from any position, and counts every sample it has played.
import { addToDigest, type PlayerMessage, type SpeakerReport } from "./messages";

declare const registerProcessor: (name: string, processor: unknown) => void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

const REPORT_EVERY = 8; // blocks of 128 samples: 43 ms

class Speaker extends AudioWorkletProcessor {
  private pieces: Float32Array[] = [];
  private clip = 0;
  private command = 0;
  private whole = false;
  private playing = false;
  private at = 0; // the next sample
  private piece = 0; // the piece that holds it
  private inside = 0; // its index there
  private played = 0;
  private digest = 0;
  private gaps = 0;
  private starved = false;
  private blocks = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<PlayerMessage>) => this.onMessage(data);
  }

  private onMessage(message: PlayerMessage): void {
    switch (message.type) {
      case "open":
        this.pieces = [];
        this.clip = message.clip;
        this.whole = this.playing = false;
        this.played = this.digest = this.gaps = 0;
        this.seek(0);
        return;
      case "piece":
        this.pieces.push(message.samples);
        return;
      case "whole":
        this.whole = true;
        return;
      case "play":
        this.playing = message.playing;
        this.starved = false;
        this.command = message.command;
        if (message.at === 0) this.gaps = 0; // from the start: those of another playback do not count
        if (message.at !== null) this.seek(message.at);
        this.report();
    }
  }

  private seek(at: number): void {
    this.piece = 0;
    this.inside = at;
    while (this.piece < this.pieces.length && this.inside >= this.pieces[this.piece]!.length) {
      this.inside -= this.pieces[this.piece++]!.length;
    }
    this.at = at - (this.piece === this.pieces.length ? this.inside : 0);
    if (this.piece === this.pieces.length) this.inside = 0;
  }

  process(_: Float32Array[][], outputs: Float32Array[][]): boolean {
    const out = outputs[0]![0]!;
    if (!this.playing) return true;
    let filled = 0;
    while (filled < out.length && this.piece < this.pieces.length) {
      const piece = this.pieces[this.piece]!;
      const n = Math.min(out.length - filled, piece.length - this.inside);
      out.set(piece.subarray(this.inside, this.inside + n), filled);
      filled += n;
      this.inside += n;
      if (this.inside === piece.length) {
        this.piece += 1;
        this.inside = 0;
      }
    }
    this.digest = addToDigest(this.digest, out.subarray(0, filled));
    this.at += filled;
    this.played += filled;
    const short = filled < out.length;
    const changed = this.starved !== (short && !this.whole);
    this.starved = short && !this.whole;
    if (short && this.whole) this.playing = false;
    else if (short && this.played > 0) this.gaps += 1;
    if (++this.blocks % REPORT_EVERY === 0 || changed || !this.playing) this.report();
    return true;
  }

  private report(): void {
    const { clip, command, at, played, digest, gaps, starved, playing } = this;
    this.port.postMessage({ clip, command, at, played, digest, gaps, starved, playing } satisfies SpeakerReport);
  }
}

registerProcessor("speaker", Speaker);
