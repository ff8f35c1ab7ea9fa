// The one player of the page: plays a clip while it arrives, from any position.
import { batch, signal } from "@preact/signals";
import { type Clip, RATE } from "./clip";
import type { PlayerMessage, WorkletReport } from "./messages";
import worklet from "./worklet?worker&url";

class Player {
  readonly clip = signal<Clip | null>(null);
  readonly playing = signal(false);
  readonly at_s = signal(0);
  readonly report = signal<WorkletReport | null>(null);
  readonly command = signal(0);
  private context: AudioContext | null = null;
  private node: Promise<AudioWorkletNode> | null = null;

  /** Start Web Audio; call from a click or a key press, as browsers require. */
  wake(): void {
    if (!this.context) {
      this.context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
      this.node = this.connect(this.context);
    }
    void this.context.resume();
  }

  private async connect(context: AudioContext): Promise<AudioWorkletNode> {
    await context.audioWorklet.addModule(worklet);
    const node = new AudioWorkletNode(context, "speaker", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }: MessageEvent<WorkletReport>) => this.onReport(data);
    node.connect(context.destination);
    return node;
  }

  private onReport(report: WorkletReport): void {
    if (report.command !== this.command.value) return;
    batch(() => {
      this.report.value = report;
      this.playing.value = report.playing;
      this.at_s.value = report.at / RATE;
    });
  }

  /** Play a clip from `from_s` on, and continue as more of it arrives. */
  open(clip: Clip, from_s = 0): void {
    this.wake();
    const previous = this.clip.value;
    if (previous) previous.onPiece = previous.onEnd = null;
    this.clip.value = clip;
    this.report.value = null;
    this.send({ type: "open", clip: clip.id });
    for (const samples of clip.pieces) this.send({ type: "piece", samples });
    clip.onPiece = (samples) => this.send({ type: "piece", samples });
    clip.onEnd = () => this.send({ type: "whole" });
    if (!clip.pending.value) clip.onEnd();
    this.play(true, from_s);
  }

  /** Play or pause, at the current position or at `from_s`; a clip that has ended starts again. */
  play(playing: boolean, from_s: number | null = null): void {
    const clip = this.clip.value;
    if (!clip) return;
    this.wake();
    const ended = !clip.pending.value && this.at_s.value >= clip.duration_s.value;
    const at_s = from_s ?? (playing && ended ? 0 : null);
    this.command.value += 1;
    this.playing.value = playing;
    if (at_s !== null) this.at_s.value = at_s;
    const at = at_s === null ? null : Math.round(Math.max(0, at_s) * RATE);
    this.send({ type: "play", playing, at, command: this.command.value });
  }

  seek(s: number): void {
    this.play(this.playing.value, s);
  }

  private send(message: PlayerMessage): void {
    void this.node?.then((node) => node.port.postMessage(message));
  }
}

export const player = new Player();
