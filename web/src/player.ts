// The one player of the page: plays a clip while it arrives, from any position.
import { batch, computed, signal } from "@preact/signals";
import { BufferSpeaker } from "./buffer-speaker";
import { type Clip, RATE } from "./clip";
import { BLOCK, type PlayerMessage, type SpeakerReport } from "./messages";
import worklet from "./worklet?worker&url";

interface Speaker {
  postMessage(message: PlayerMessage): void;
}

class Player {
  readonly clip = signal<Clip | null>(null);
  readonly playing = signal(false);
  readonly at_s = signal(0);
  readonly report = signal<SpeakerReport | null>(null);
  readonly command = signal(0);
  /** Whether it should be playing and has nothing to play yet. */
  readonly waiting = computed(() => {
    const clip = this.clip.value;
    if (!this.playing.value || !clip?.pending.value) return false;
    return clip.count.value === 0 || (this.report.value?.starved ?? false);
  });
  /** Seconds without sound after the first sound. */
  readonly gap_s = computed(() => ((this.report.value?.gaps ?? 0) * BLOCK) / RATE);
  private context: AudioContext | null = null;
  private speaker: Promise<Speaker> | null = null;

  /** Start Web Audio; call from a click or a key press, as browsers require. */
  wake(): void {
    if (!this.context) {
      this.context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
      this.speaker = this.connect(this.context);
    }
    void this.context.resume();
  }

  /** Connect a worklet; pages served over plain HTTP have none, and schedule buffers instead. */
  private async connect(context: AudioContext): Promise<Speaker> {
    const onReport = (report: SpeakerReport) => this.onReport(report);
    if (!context.audioWorklet) return new BufferSpeaker(context, onReport);
    await context.audioWorklet.addModule(worklet);
    const node = new AudioWorkletNode(context, "speaker", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }: MessageEvent<SpeakerReport>) => onReport(data);
    node.connect(context.destination);
    return node.port;
  }

  private onReport(report: SpeakerReport): void {
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
    this.release();
    this.clip.value = clip;
    this.report.value = null;
    this.send({ type: "open", clip: clip.id });
    for (const samples of clip.pieces) this.send({ type: "piece", samples });
    clip.onPiece = (samples) => this.send({ type: "piece", samples });
    clip.onEnd = () => (clip.count.value ? this.send({ type: "whole" }) : this.close(clip));
    if (!clip.pending.value) clip.onEnd();
    this.play(true, from_s);
  }

  /** Forget a clip that ended without any audio: there is nothing to play. */
  private close(clip: Clip): void {
    if (this.clip.value !== clip) return;
    this.play(false);
    this.release();
    this.clip.value = null;
  }

  private release(): void {
    const clip = this.clip.value;
    if (clip) clip.onPiece = clip.onEnd = null;
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
    void this.speaker?.then((speaker) => speaker.postMessage(message));
  }
}

export const player = new Player();
