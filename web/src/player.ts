// One player for the whole page: it plays a clip while it arrives, from any place.
import { batch, signal } from "@preact/signals";
import { type Clip, RATE } from "./clip";
import type { FromPlayer, FromWorklet } from "./messages";
import worklet from "./worklet?worker&url";

class Player {
  readonly clip = signal<Clip | null>(null);
  readonly playing = signal(false);
  readonly at_s = signal(0);
  readonly heard = signal<FromWorklet | null>(null);
  readonly turn = signal(0);
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
    if (heard.turn !== this.turn.value) return;
    batch(() => {
      this.heard.value = heard;
      this.playing.value = heard.playing;
      this.at_s.value = heard.at / RATE;
    });
  }

  /** Plays this clip from `from_s`, and goes on as more of it arrives. */
  open(clip: Clip, from_s = 0): void {
    this.wake();
    const before = this.clip.value;
    if (before) before.onPiece = before.onEnd = null;
    this.clip.value = clip;
    this.heard.value = null;
    this.send({ type: "open", clip: clip.id });
    for (const samples of clip.pieces) this.send({ type: "piece", samples });
    clip.onPiece = (samples) => this.send({ type: "piece", samples });
    clip.onEnd = () => this.send({ type: "whole" });
    if (!clip.coming.value) clip.onEnd();
    this.play(true, from_s);
  }

  /** Goes on or pauses, here or elsewhere; what has ended begins again. */
  play(playing: boolean, from_s: number | null = null): void {
    const clip = this.clip.value;
    if (!clip) return;
    this.wake();
    const ended = !clip.coming.value && this.at_s.value >= clip.duration_s.value;
    const at_s = from_s ?? (playing && ended ? 0 : null);
    this.turn.value += 1;
    this.playing.value = playing;
    if (at_s !== null) this.at_s.value = at_s;
    const at = at_s === null ? null : Math.round(Math.max(0, at_s) * RATE);
    this.send({ type: "play", playing, at, turn: this.turn.value });
  }

  seek(s: number): void {
    this.play(this.playing.value, s);
  }

  private send(message: FromPlayer): void {
    void this.node?.then((node) => node.port.postMessage(message));
  }
}

export const player = new Player();
