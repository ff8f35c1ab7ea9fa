// One player for the whole page: it plays a clip while it arrives, from any place.
import { signal } from "@preact/signals";
import { type Clip, RATE } from "./clip";
import type { FromPlayer, FromWorklet } from "./messages";
import worklet from "./worklet?worker&url";

class Player {
  readonly clip = signal<Clip | null>(null);
  readonly playing = signal(false);
  readonly at_s = signal(0);
  readonly heard = signal<FromWorklet | null>(null);
  private context: AudioContext | null = null;
  private node: Promise<AudioWorkletNode> | null = null;

  /** Call from a click or a key: a browser lets nothing else make a sound. */
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
    node.port.onmessage = ({ data }: MessageEvent<FromWorklet>) => this.told(data);
    node.connect(context.destination);
    return node;
  }

  private told(heard: FromWorklet): void {
    if (heard.clip !== this.clip.value?.id) return;
    this.heard.value = heard;
    this.playing.value = heard.playing;
    this.at_s.value = heard.at / RATE;
  }

  /** Plays this clip from `from_s`, and goes on as more of it arrives. */
  open(clip: Clip, { playing = true, from_s = 0 } = {}): void {
    this.wake();
    this.leave();
    this.clip.value = clip;
    this.playing.value = playing;
    this.at_s.value = from_s;
    this.heard.value = null;
    this.send({ type: "open", clip: clip.id, playing });
    for (const samples of clip.pieces) this.send({ type: "piece", samples });
    if (from_s) this.send({ type: "seek", at: Math.round(from_s * RATE) });
    clip.onPiece = (samples) => this.send({ type: "piece", samples });
    clip.onEnd = () => this.send({ type: "whole" });
    if (clip.state.value !== "waiting" && clip.state.value !== "arriving") clip.onEnd();
  }

  private leave(): void {
    const before = this.clip.value;
    if (before) before.onPiece = before.onEnd = null;
  }

  play(playing: boolean): void {
    const clip = this.clip.value;
    if (!clip) return;
    this.wake();
    const ended = clip.state.value !== "arriving" && this.at_s.value >= clip.duration_s.value;
    if (playing && ended) this.send({ type: "seek", at: 0 });
    this.send({ type: "play", playing });
  }

  seek(s: number): void {
    if (!this.clip.value) return;
    this.at_s.value = Math.max(0, s);
    this.send({ type: "seek", at: Math.round(this.at_s.value * RATE) });
  }

  private send(message: FromPlayer): void {
    void this.node?.then((node) => node.port.postMessage(message));
  }
}

export const player = new Player();
