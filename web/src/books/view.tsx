// The Audiobooks view: drop a book, follow its progress, download it.
import { useEffect } from "preact/hooks";
import { Icon } from "../icons";
import { ProblemBox } from "../problem-box";
import { displayName, request, selectVoice, voices } from "../state";
import "./books.css";
import { formatLeft, formatSeconds } from "../time";
import { Correction } from "./correction";
import { download, type Job, jobs, pause, problem, remove, resume, watchJobs } from "./jobs";
import { open, placeOf } from "./listen";
import { BookPlayer } from "./player";
import {
  ABOUT,
  type AboutName,
  about,
  addFile,
  AUDIO_FORMATS,
  bookWords,
  file,
  format,
  keeping,
  sending,
  skipping,
  SUFFIXES,
  upload,
  withCaptions,
} from "./upload";

export function BooksView() {
  useEffect(watchJobs, []);
  return (
    <div class="books">
      <div class="lead">
        <h1>Audiobooks</h1>
        <p>
          Drop a book here and this server reads it to you: chapters, cover and captions included. It works in the
          background, so you can close this page.
        </p>
      </div>
      <Upload />
      <ProblemBox problem={problem.value} onRetry={file.value ? () => void upload() : undefined} />
      <Jobs />
    </div>
  );
}

function Upload() {
  const book = file.value;
  return (
    <section class="upload" aria-labelledby="upload-title">
      <h2 id="upload-title" class="hidden">
        New audiobook
      </h2>
      <label class="drop" data-filled={book !== null}>
        <input
          type="file"
          id="book"
          accept={SUFFIXES.join(",")}
          onChange={(event) => {
            const chosen = event.currentTarget.files?.[0];
            if (chosen) addFile(chosen);
            event.currentTarget.value = "";
          }}
        />
        {book ? (
          <span>
            <b>{book.name}</b> <span class="faint">{formatBytes(book.size)}; press to choose another file</span>
          </span>
        ) : (
          <span>
            <b>Drop a book here</b>, or press to choose one. <span class="faint">{SUFFIXES.join(" ")}</span>
          </span>
        )}
      </label>
      {book ? (
        <div class="row options">
          <label class="field">
            <span>Voice</span>
            <select
              id="book-voice"
              value={request.value.voice.length === 1 ? request.value.voice[0]!.name : ""}
              onChange={(event) => event.currentTarget.value && selectVoice(event.currentTarget.value)}
            >
              {request.value.voice.length > 1 ? (
                <option value="">{request.value.voice.map(({ name }) => displayName(name)).join(" + ")}</option>
              ) : null}
              {voices.value.map(({ id, label, needs }) => (
                <option key={id} value={id} disabled={Boolean(needs)}>
                  {needs ? `${label}: not installed` : label}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>File</span>
            <select id="book-format" value={format.value} onChange={(event) => (format.value = event.currentTarget.value)}>
              {Object.entries(AUDIO_FORMATS).map(([name, title]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={withCaptions.value}
              onChange={(event) => (withCaptions.value = event.currentTarget.checked)}
            />{" "}
            with captions (.srt)
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={skipping.value}
              onChange={(event) => (skipping.value = event.currentTarget.checked)}
            />{" "}
            without copyright page and notes
          </label>
          <label class="check" title="About 3 kB for each character, until you delete the audiobook">
            <input
              type="checkbox"
              checked={keeping.value}
              onChange={(event) => (keeping.value = event.currentTarget.checked)}
            />{" "}
            to be corrected later
          </label>
          <About />
          <button type="button" class="primary" disabled={sending.value} onClick={() => void upload()}>
            {sending.value ? "Sending…" : "Make audiobook"}
          </button>
        </div>
      ) : null}
    </section>
  );
}

/** What the book does not say of itself, and how its words are said. */
function About() {
  return (
    <details class="about">
      <summary>Title, author, series, pronunciations</summary>
      <div class="row options">
        {(Object.keys(ABOUT) as AboutName[]).map((name) => (
          <label key={name} class="field">
            <span>{ABOUT[name]}</span>
            <input
              type="text"
              placeholder={name === "series" ? "The Winters #2" : "as in the book"}
              value={about.value[name]}
              onInput={(event) => (about.value = { ...about.value, [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      </div>
      <label class="field">
        <span>Pronunciations in this book, one a line</span>
        <textarea
          rows={3}
          spellcheck={false}
          placeholder={"Kira = keera\nnginx = engine ex"}
          value={bookWords.value}
          onInput={(event) => (bookWords.value = event.currentTarget.value)}
        />
      </label>
    </details>
  );
}

function Jobs() {
  const all = jobs.value;
  if (!all) return <p class="empty">Loading…</p>;
  if (!all.length) return <p class="empty">No audiobooks yet.</p>;
  return (
    <section class="jobs" aria-labelledby="jobs-title">
      <h2 id="jobs-title">On this server</h2>
      <ol>
        {all.map((job) => (
          <Card key={job.id} job={job} />
        ))}
      </ol>
    </section>
  );
}

function Card({ job }: { job: Job }) {
  const unfinished = job.state === "queued" || job.state === "running";
  const percent = Math.round(100 * (job.progress?.fraction ?? 0));
  return (
    <li class="job" data-state={job.state} data-title={job.title}>
      <div class="head">
        <h3>{job.title || "Untitled"}</h3>
        <p class="faint">
          {[job.author, chapters(job.chapters), displayName(job.voice), job.format].filter(Boolean).join(" · ")}
        </p>
      </div>
      {unfinished ? (
        <progress aria-label={`Progress of ${job.title}`} max={100} value={percent}>
          {percent} %
        </progress>
      ) : null}
      <p class="state" role="status">
        {describe(job)}
      </p>
      {job.error ? <p class="error">{job.error.message}</p> : null}
      {job.notes.length ? (
        <details class="notes">
          <summary>
            {job.notes.length} {job.notes.length === 1 ? "note" : "notes"} on what was not read as written
          </summary>
          <ul>
            {job.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </details>
      ) : null}
      {job.state === "done" && open.value === job.id ? <BookPlayer job={job} /> : null}
      {job.state === "done" ? <Correction job={job} /> : null}
      <div class="row">
        {job.state === "done" && open.value !== job.id ? (
          <button type="button" class="primary" aria-label={`Listen to ${job.title}`} onClick={() => (open.value = job.id)}>
            <Icon name="play" /> {placeOf(job.id) ? "Continue listening" : "Listen"}
          </button>
        ) : null}
        {job.state === "done" ? (
          <button type="button" class="plain framed" onClick={() => void download(job, "audio")}>
            <Icon name="save" /> Download .{job.format}
          </button>
        ) : null}
        {job.state === "done" && job.captions ? (
          <button type="button" class="plain framed" onClick={() => void download(job, "captions")}>
            Captions .{job.captions}
          </button>
        ) : null}
        {unfinished ? (
          <button type="button" class="plain framed" onClick={() => void pause(job)}>
            <Icon name="pause" /> Pause
          </button>
        ) : null}
        {["paused", "failed", "cancelled"].includes(job.state) ? (
          <button type="button" class="plain framed" onClick={() => void resume(job)}>
            <Icon name="play" /> Continue
          </button>
        ) : null}
        <button
          type="button"
          class="plain"
          aria-label={`Delete ${job.title}`}
          onClick={() => confirm(`Delete “${job.title}” and its files from the server?`) && void remove(job)}
        >
          Delete
        </button>
      </div>
    </li>
  );
}

function describe(job: Job): string {
  const { progress, duration_s } = job;
  switch (job.state) {
    case "queued":
      return "Waiting for its turn.";
    case "done":
      return `Ready${duration_s ? `: ${formatSeconds(duration_s)} of audio` : ""}.`;
    case "failed":
      return "Stopped by an error. What was read so far is kept.";
    case "paused":
    case "cancelled":
      return "Paused. What was read so far is kept.";
    case "running": {
      if (!progress || progress.step === "waiting") return "Starting…";
      if (progress.step === "writing") return "Writing the file…";
      const left = progress.left_s === null ? "" : `, about ${formatLeft(progress.left_s)} left`;
      return `${Math.round(100 * progress.fraction)} % read: ${formatSeconds(progress.spoken_s)} of audio${left}.`;
    }
  }
}

function chapters(n: number): string {
  return `${n} ${n === 1 ? "chapter" : "chapters"}`;
}

function formatBytes(n: number): string {
  return n < 1e6 ? `${Math.max(1, Math.round(n / 1000))} kB` : `${(n / 1e6).toFixed(1)} MB`;
}
