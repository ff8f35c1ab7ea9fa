// Corrects a finished book: its file, or how words are said. What was kept and does not differ is not spoken again.
import { useState } from "preact/hooks";
import { request } from "../state";
import { correct, type Job } from "./jobs";
import { parseWords, SUFFIXES } from "./upload";

export function Correction({ job }: { job: Job }) {
  const [words, setWords] = useState("");
  const [book, setBook] = useState<File | null>(null);

  function send(): void {
    const form = new FormData();
    form.set("lexicon", JSON.stringify({ ...request.value.lexicon, ...parseWords(words) }));
    if (book) form.set("file", book, book.name);
    void correct(job, form);
  }

  return (
    <details class="correction">
      <summary>Correct {job.title}</summary>
      <p class="hint">
        {job.keep ? "Only what differs is spoken again." : "All of it is spoken again: nothing of what was spoken is kept."}
      </p>
      <label class="field">
        <span>The corrected book, if its text changes</span>
        <input
          type="file"
          accept={SUFFIXES.join(",")}
          onChange={(event) => setBook(event.currentTarget.files?.[0] ?? null)}
        />
      </label>
      <label class="field">
        <span>Pronunciations, one a line, beside those it has</span>
        <textarea
          rows={3}
          spellcheck={false}
          placeholder="Kira = keera"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </label>
      <button type="button" class="plain framed" onClick={send}>
        Speak what differs
      </button>
    </details>
  );
}
