// One piece of speech while it arrives and after: samples, words, the borders of its chunks, how it was made.
import { computed, signal } from "@preact/signals";
import type { Ask } from "./ask";
import { type Placed, place, readable, type Word } from "./words";

export const RATE = 24_000;
export const PEAK = 120; // samples behind one stroke of the waveform

export type State = "waiting" | "arriving" | "whole" | "stopped" | "failed";

/** Milliseconds of each step until the first sound, as Server-Timing tells them. */
export type Steps = Record<string, number>;

let made = 0;

export class Clip {
  readonly id = ++made;
  readonly born = new Date();
  readonly state = signal<State>("waiting");
  readonly error = signal("");
  readonly words = signal<Placed[]>([]);
  readonly borders = signal<number[]>([]); // in samples, where a chunk ends
  readonly count = signal(0); // samples that have arrived
  readonly first_ms = signal<number | null>(null);
  readonly made_ms = signal<number | null>(null);
  readonly batch = signal<number | null>(null);
  readonly steps = signal<Steps>({});
  readonly voice = signal("");
  readonly coming = computed(() => this.state.value === "waiting" || this.state.value === "arriving");
  readonly duration_s = computed(() => this.count.value / RATE);
  readonly faster = computed(() => (this.made_ms.value ? (1000 * this.duration_s.value) / this.made_ms.value : null));
  readonly peaks: number[] = [];
  readonly pieces: Float32Array[] = [];
  onPiece: ((piece: Float32Array) => void) | null = null;
  onEnd: (() => void) | null = null;
  private readonly plain: string;
  private peak = 0;

  constructor(
    readonly ask: Ask,
    readonly title: string,
  ) {
    this.plain = readable(ask.text);
  }

  append(piece: Float32Array): void {
    let n = this.count.value;
    for (const sample of piece) {
      this.peak = Math.max(this.peak, Math.abs(sample));
      if (++n % PEAK === 0) {
        this.peaks.push(this.peak);
        this.peak = 0;
      }
    }
    this.pieces.push(piece);
    this.count.value = n;
    if (this.state.value === "waiting") this.state.value = "arriving";
    this.onPiece?.(piece);
  }

  /** Words of the chunk whose samples have all come. */
  say(words: Word[]): void {
    let from = this.words.value.at(-1)?.to ?? 0;
    const placed = words.map((word) => {
      const found = place(this.plain, word, from);
      from = found.to;
      return found;
    });
    this.words.value = [...this.words.value, ...placed];
    this.border();
  }

  border(): void {
    if (this.borders.value.at(-1) !== this.count.value) this.borders.value = [...this.borders.value, this.count.value];
  }

  end(state: State, error = ""): void {
    if (state === "whole") this.border();
    this.error.value = error;
    this.state.value = state;
    this.onEnd?.();
  }
}

/** 16-bit samples as they come over the wire, as a worklet plays them. */
export function floats(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const made = new Float32Array(bytes.byteLength >> 1);
  for (let n = 0; n < made.length; n++) made[n] = view.getInt16(2 * n, true) / 32768;
  return made;
}
