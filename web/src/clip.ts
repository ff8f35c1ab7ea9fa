// The audio of one request, while it arrives and after: samples, words, chunk ends, timings.
import { computed, signal } from "@preact/signals";
import type { Problem } from "./problems";
import type { SpeechRequest } from "./request";
import { blankNames } from "./dialogue";
import { blankMarks, placeWord, type PlacedWord, type Word } from "./words";

export const RATE = 24_000;
export const PEAK_SAMPLES = 120; // samples summarised by one peak of the waveform

export type ClipState = "waiting" | "arriving" | "whole" | "stopped" | "failed";

/** Milliseconds of each step before the first audio, from Server-Timing. */
export type Steps = Record<string, number>;

/** Symbols of the text that have no pronunciation: each once, and how many in all. */
export interface Unspoken {
  symbols: string[];
  count: number;
}

let lastId = 0;
let lastCreated_ms = 0;

/** Now, in milliseconds since 1970, but never the same twice: it names a clip in the history. */
function uniqueNow_ms(): number {
  lastCreated_ms = Math.max(lastCreated_ms + 1, Date.now());
  return lastCreated_ms;
}

export class Clip {
  readonly id = ++lastId;
  readonly state = signal<ClipState>("waiting");
  readonly problem = signal<Problem | null>(null);
  readonly notices = signal<string[]>([]); // sentences of the server
  readonly unspoken = signal<Unspoken>({ symbols: [], count: 0 });
  readonly words = signal<PlacedWord[]>([]);
  readonly chunkEnds = signal<number[]>([]); // in samples
  readonly count = signal(0); // samples that have arrived
  readonly first_ms = signal<number | null>(null);
  readonly total_ms = signal<number | null>(null);
  readonly batch = signal<number | null>(null);
  readonly steps = signal<Steps>({});
  readonly pending = computed(() => this.state.value === "waiting" || this.state.value === "arriving");
  readonly duration_s = computed(() => this.count.value / RATE);
  readonly timesRealTime = computed(() => (this.total_ms.value ? (1000 * this.duration_s.value) / this.total_ms.value : null));
  readonly peaks: number[] = [];
  readonly pieces: Float32Array[] = [];
  onPiece: ((piece: Float32Array) => void) | null = null;
  onEnd: (() => void) | null = null;
  private readonly plainText: string;
  private peak = 0;

  constructor(
    readonly request: SpeechRequest,
    readonly title: string,
    readonly created_ms = uniqueNow_ms(),
  ) {
    this.plainText = blankNames(blankMarks(request.text), request.cast);
  }

  append(piece: Float32Array): void {
    let n = this.count.value;
    for (const sample of piece) {
      this.peak = Math.max(this.peak, Math.abs(sample));
      if (++n % PEAK_SAMPLES === 0) {
        this.peaks.push(this.peak);
        this.peak = 0;
      }
    }
    this.pieces.push(piece);
    this.count.value = n;
    if (this.state.value === "waiting") this.state.value = "arriving";
    this.onPiece?.(piece);
  }

  /** Add the words of a chunk whose samples have all arrived. */
  addWords(words: Word[]): void {
    let from = this.words.value.at(-1)?.to ?? 0;
    const placed = words.map((word) => {
      const position = placeWord(this.plainText, word, from);
      from = position.to;
      return position;
    });
    this.words.value = [...this.words.value, ...placed];
    this.endChunk();
  }

  private endChunk(): void {
    const ends = this.chunkEnds.value;
    if (ends.at(-1) !== this.count.value) this.chunkEnds.value = [...ends, this.count.value];
  }

  /** Add what the server says of a chunk: sentences, and symbols that it could not speak. */
  addNotices(sentences: string[], unspoken: string[], count: number): void {
    this.notices.value = [...new Set([...this.notices.value, ...sentences])];
    this.unspoken.value = {
      symbols: [...new Set([...this.unspoken.value.symbols, ...unspoken])],
      count: this.unspoken.value.count + count,
    };
  }

  end(state: ClipState, problem: Problem | null = null): void {
    if (state === "whole") this.endChunk();
    this.problem.value = problem;
    this.state.value = state;
    this.onEnd?.();
  }
}

/** Convert 16-bit PCM to the floats that Web Audio plays. */
export function toFloats(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const samples = new Float32Array(bytes.byteLength >> 1);
  for (let n = 0; n < samples.length; n++) samples[n] = view.getInt16(2 * n, true) / 32768;
  return samples;
}
