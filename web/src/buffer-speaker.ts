// Audio output without AudioWorklet, which browsers offer only over TLS and on localhost: buffers that are scheduled
// one after the other on the clock of Web Audio, so that a busy page makes no gap.
import { addToDigest, BLOCK, type PlayerMessage, type SpeakerReport } from "./messages";

const AHEAD_S = 12; // scheduled in advance: timers of a hidden tab run only once a second
const LEAD_S = 0.05; // before the first buffer, so that it does not start in the past
const REPORT_MS = 40;

interface Scheduled {
  node: AudioBufferSourceNode;
  start: number; // frame of the context's clock
  samples: Float32Array;
  from: number; // position of the first sample in the clip
  counted: number; // samples that were played and counted
}

export class BufferSpeaker {
  private pieces: Float32Array[] = [];
  private scheduled: Scheduled[] = []; // oldest first
  private clip = 0;
  private command = 0;
  private whole = false;
  private playing = false;
  private at = 0; // the next sample to be played
  private piece = 0; // the piece to be scheduled next
  private inside = 0; // its first sample that is not scheduled
  private end = 0; // frame at which the last scheduled buffer ends
  private seen = 0; // frame up to which gaps are counted
  private played = 0;
  private digest = 0;
  private gaps = 0;
  private timer = 0;

  constructor(
    private readonly context: AudioContext,
    private readonly onReport: (report: SpeakerReport) => void,
  ) {}

  postMessage(message: PlayerMessage): void {
    this.count();
    switch (message.type) {
      case "open":
        this.silence();
        this.pieces = [];
        this.clip = message.clip;
        this.whole = this.playing = false;
        this.played = this.digest = this.gaps = 0;
        this.seek(0);
        return;
      case "piece":
        this.pieces.push(message.samples);
        return this.schedule();
      case "whole":
        this.whole = true;
        return;
      case "play":
        this.silence();
        this.playing = message.playing;
        this.command = message.command;
        if (message.at === 0) this.gaps = 0; // from the start: those of another playback do not count
        this.seek(message.at ?? this.at);
        this.seen = this.frame();
        this.schedule();
        clearInterval(this.timer);
        if (this.playing) this.timer = window.setInterval(() => this.tick(), REPORT_MS);
        this.report();
    }
  }

  private frame(): number {
    return Math.floor(this.context.currentTime * this.context.sampleRate);
  }

  private tick(): void {
    this.count();
    this.schedule();
    if (this.whole && this.isStarved()) {
      this.playing = false;
      clearInterval(this.timer);
    }
    this.report();
  }

  /** Count what was played, and the time without sound, since the last call. */
  private count(): void {
    const now = this.frame();
    for (const entry of this.scheduled) {
      const heard = Math.min(Math.max(0, now - entry.start), entry.samples.length);
      this.digest = addToDigest(this.digest, entry.samples.subarray(entry.counted, heard));
      this.played += heard - entry.counted;
      entry.counted = heard;
      if (heard) this.at = entry.from + heard;
    }
    this.scheduled = this.scheduled.filter((entry) => entry.counted < entry.samples.length);
    if (this.playing && !this.whole && this.played > 0 && this.isStarved()) {
      this.gaps += Math.max(0, now - Math.max(this.seen, this.end)) / BLOCK;
    }
    this.seen = now;
  }

  private isStarved(): boolean {
    return this.playing && this.scheduled.length === 0 && this.piece === this.pieces.length;
  }

  private schedule(): void {
    if (!this.playing) return;
    const rate = this.context.sampleRate;
    const now = this.frame();
    while (this.piece < this.pieces.length && this.end < now + AHEAD_S * rate) {
      const samples = this.pieces[this.piece]!.subarray(this.inside);
      if (this.end <= now) this.restart(now + Math.round(LEAD_S * rate));
      if (samples.length) this.start(samples);
      this.piece += 1;
      this.inside = 0;
    }
  }

  /** Go on after nothing was scheduled; the lead is silent, too. */
  private restart(frame: number): void {
    if (this.end > 0 && this.played > 0) this.gaps += (frame - this.frame()) / BLOCK;
    this.end = frame;
  }

  private start(samples: Float32Array): void {
    const last = this.scheduled.at(-1);
    const from = last ? last.from + last.samples.length : this.at;
    const node = this.context.createBufferSource();
    node.buffer = this.context.createBuffer(1, samples.length, this.context.sampleRate);
    node.buffer.getChannelData(0).set(samples);
    node.connect(this.context.destination);
    node.start(this.end / this.context.sampleRate);
    this.scheduled.push({ node, start: this.end, samples, from, counted: 0 });
    this.end += samples.length;
  }

  private silence(): void {
    for (const { node } of this.scheduled) {
      node.stop();
      node.disconnect();
    }
    this.scheduled = [];
    this.end = 0;
  }

  private seek(at: number): void {
    this.piece = 0;
    this.inside = at;
    while (this.piece < this.pieces.length && this.inside >= this.pieces[this.piece]!.length) {
      this.inside -= this.pieces[this.piece++]!.length;
    }
    this.at = at;
    if (this.piece < this.pieces.length) return;
    this.at -= this.inside; // past the end: what arrives next
    this.inside = 0;
  }

  private report(): void {
    const { clip, command, at, played, digest, playing } = this;
    const gaps = Math.round(this.gaps);
    this.onReport({ clip, command, at, played, digest, gaps, starved: !this.whole && this.isStarved(), playing });
  }
}
