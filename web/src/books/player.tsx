// Listens to a finished audiobook: chapters, the place where it was left, speed and cover.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../icons";
import { explain } from "../problems";
import { type Job, problem } from "./jobs";
import { type Chapter, chapterAt, fileUrl, loadChapters, placeOf, savePlace, setSpeed, SPEEDS, speed } from "./listen";

const SKIP_S = 30;
const UNPLAYABLE = { text: "This browser could not play the book.", step: "Download its file.", detail: "", retry: false };
const SAVE_S = 5; // between two notes of the place

export function BookPlayer({ job }: { job: Job }) {
  const audio = useRef<HTMLAudioElement>(null);
  const [chapters, setChapters] = useState<Chapter[]>([]);
  const [at, setAt] = useState(placeOf(job.id));
  const [playing, setPlaying] = useState(false);
  const length = job.duration_s ?? 0;
  const current = chapterAt(chapters, at);

  useEffect(() => {
    loadChapters(job).then(setChapters, (error: unknown) => (problem.value = explain(error)));
    announce(job);
  }, [job.id]);
  useEffect(() => {
    if (audio.current) audio.current.playbackRate = speed.value;
  }, [speed.value, playing]);

  function seek(to: number): void {
    const place = Math.min(Math.max(0, to), length);
    if (audio.current) audio.current.currentTime = place;
    setAt(place);
    savePlace(job.id, place);
  }
  function moved(element: HTMLAudioElement): void {
    setAt(element.currentTime);
    if (Math.abs(element.currentTime - placeOf(job.id)) >= SAVE_S) savePlace(job.id, element.currentTime);
  }
  function paused(element: HTMLAudioElement): void {
    setPlaying(false);
    savePlace(job.id, element.ended ? 0 : element.currentTime);
  }

  return (
    <div class="book-player" data-playing={playing} data-chapter={current}>
      {job.cover ? <img class="cover" src={fileUrl(job, "cover")} alt={`Cover of ${job.title}`} /> : null}
      <div class="controls">
        <audio
          ref={audio}
          src={fileUrl(job, "audio")}
          preload="metadata"
          onLoadedMetadata={(event) => {
            event.currentTarget.currentTime = placeOf(job.id);
            event.currentTarget.playbackRate = speed.value;
          }}
          onTimeUpdate={(event) => event.currentTarget.paused || moved(event.currentTarget)}
          onPlay={() => setPlaying(true)}
          onPause={(event) => paused(event.currentTarget)}
          onError={() => (problem.value = UNPLAYABLE)}
        />
        <p class="now">{chapters[current]?.title ?? job.title}</p>
        <input
          type="range"
          aria-label={`Place in ${job.title}`}
          aria-valuetext={`${clock(at)} of ${clock(length)}`}
          min={0}
          max={Math.ceil(length)}
          step={1}
          value={at}
          onInput={(event) => seek(event.currentTarget.valueAsNumber)}
        />
        <p class="times faint">
          <span>{clock(at)}</span> <span>{clock(Math.max(0, length - at))} left</span>
        </p>
        <div class="row">
          <button type="button" class="plain framed" aria-label={`Back ${SKIP_S} seconds`} onClick={() => seek(at - SKIP_S)}>
            −{SKIP_S} s
          </button>
          <button
            type="button"
            class="primary"
            aria-label={playing ? "Pause the book" : "Play the book"}
            onClick={() => (playing ? audio.current?.pause() : void audio.current?.play())}
          >
            <Icon name={playing ? "pause" : "play"} /> {playing ? "Pause" : "Play"}
          </button>
          <button type="button" class="plain framed" aria-label={`Forward ${SKIP_S} seconds`} onClick={() => seek(at + SKIP_S)}>
            +{SKIP_S} s
          </button>
          <label class="field">
            <span>Speed</span>
            <select value={speed.value} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
              {SPEEDS.map((value) => (
                <option key={value} value={value}>
                  {value}×
                </option>
              ))}
            </select>
          </label>
        </div>
      </div>
      {chapters.length > 1 ? (
        <ol class="chapters" aria-label="Chapters">
          {chapters.map(({ startTime, title }, n) => (
            <li key={n}>
              <button type="button" class="plain" aria-current={n === current} onClick={() => seek(startTime)}>
                <span>{title}</span> <span class="faint">{clock(startTime)}</span>
              </button>
            </li>
          ))}
        </ol>
      ) : null}
    </div>
  );
}

/** Tell the system what plays, for its lock screen and its keys. */
function announce(job: Job): void {
  if (!("mediaSession" in navigator)) return;
  const artwork = job.cover ? [{ src: new URL(fileUrl(job, "cover"), location.href).href }] : [];
  navigator.mediaSession.metadata = new MediaMetadata({ title: job.title, artist: job.author, artwork });
}

function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  const two = (n: number) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60;
  return whole < 3600 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(whole / 3600)}:${two(minutes)}:${two(whole % 60)}`;
}
