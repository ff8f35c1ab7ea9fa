// The last step to the ear. It keeps the clip, plays it from any place, and counts every sample it has handed over.
import type { FromPlayer, FromWorklet } from "./messages";

declare const registerProcessor: (name: string, made: unknown) => void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

const TELL_EVERY = 8; // blocks of 128 samples: 43 ms

class Speaker extends AudioWorkletProcessor {
  private pieces: Float32Array[] = [];
  private clip = 0;
  private turn = 0;
  private whole = false;
  private playing = false;
  private at = 0; // the next sample
  private piece = 0; // which holds it
  private inside = 0; // and where
  private heard = 0;
  private digest = 0;
  private gaps = 0;
  private blocks = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<FromPlayer>) => this.told(data);
  }

  private told(message: FromPlayer): void {
    switch (message.type) {
      case "open":
        this.pieces = [];
        this.clip = message.clip;
        this.whole = this.playing = false;
        this.heard = this.digest = this.gaps = 0;
        this.move(0);
        return;
      case "piece":
        this.pieces.push(message.samples);
        return;
      case "whole":
        this.whole = true;
        return;
      case "play":
        this.playing = message.playing;
        this.turn = message.turn;
        if (message.at !== null) this.move(message.at);
        this.tell();
    }
  }

  private move(at: number): void {
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
    for (let n = 0; n < filled; n++) this.digest = (Math.imul(this.digest, 31) + Math.round(out[n]! * 32768)) | 0;
    this.at += filled;
    this.heard += filled;
    const short = filled < out.length;
    if (short && this.whole) {
      this.playing = false;
      this.tell();
    } else {
      if (short && this.heard > 0) this.gaps += 1;
      if (++this.blocks % TELL_EVERY === 0) this.tell();
    }
    return true;
  }

  private tell(): void {
    const { clip, turn, at, heard, digest, gaps, playing } = this;
    this.port.postMessage({ clip, turn, at, heard, digest, gaps, playing } satisfies FromWorklet);
  }
}

registerProcessor("speaker", Speaker);
