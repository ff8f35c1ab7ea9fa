// The frame of the page: header, three views, one player below them.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { addFile, bookFiles } from "./books/upload";
import { BooksView } from "./books/view";
import { Icon } from "./icons";
import { KeyDialog } from "./key-dialog";
import { PlayerBar } from "./player-bar";
import { parseLink } from "./request";
import { key, keyDialog } from "./server";
import { isVoiceFile, voiceFile } from "./speak/own-voices";
import { PronunciationDialog } from "./speak/pronunciation-dialog";
import { SpeakView } from "./speak/view";
import { VoiceDialog } from "./speak/voice-dialog";
import { request } from "./state";
import { theme, toggleTheme } from "./theme";

const VIEWS = { speak: "Speak", books: "Audiobooks", batching: "Live batching" } as const;
const TITLES = { speak: "tutti: text to speech", books: "tutti: audiobooks", batching: "tutti: live batching" } as const;
type View = keyof typeof VIEWS;

const view = signal<View>(viewOf(location.hash));
const batching = signal<ComponentType | null>(null);

function viewOf(fragment: string): View {
  const name = fragment.replace(/^#/, "").split("?", 1)[0]!;
  return name in VIEWS ? (name as View) : "speak";
}

function onHashChange(): void {
  view.value = viewOf(location.hash);
  const linked = parseLink(location.hash);
  if (linked) request.value = { ...linked, lexicon: request.value.lexicon };
  document.title = TITLES[view.value];
  // The charts are fetched with their view.
  if (view.value === "batching" && !batching.value) {
    void import("./batching/view").then((part) => {
      batching.value = part.BatchingView;
    });
  }
}

/** A file that is dropped anywhere becomes an audiobook, the file of a voice a voice. */
function onDrop(event: DragEvent): void {
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  const file = event.dataTransfer.files[0]!;
  if (isVoiceFile(file)) voiceFile.value = file;
  else addFile(file);
  location.hash = isVoiceFile(file) ? "#speak" : "#books";
}

export function App() {
  useEffect(() => {
    addEventListener("hashchange", onHashChange);
    addEventListener("dragover", (event) => bookFiles(event).length && event.preventDefault());
    addEventListener("drop", onDrop);
    onHashChange();
  }, []);
  const Batching = batching.value;
  return (
    <>
      <header>
        <div class="masthead">
          <a class="skip" href="#view" onClick={skip}>
            Skip to content
          </a>
          <a class="mark" href="#speak" aria-label="tutti, start page">
            <span aria-hidden="true">tutti</span>
          </a>
          <nav aria-label="Views">
            {(Object.keys(VIEWS) as View[]).map((name) => (
              <a key={name} href={`#${name}`} aria-current={view.value === name ? "page" : undefined}>
                {VIEWS[name]}
              </a>
            ))}
          </nav>
          <div class="tools">
            <a class="quiet" href="docs">
              API reference
            </a>
            <button
              type="button"
              class="icon"
              aria-label={key.value ? "Change the API key" : "Enter an API key"}
              title="API key"
              onClick={() => (keyDialog.value = "open")}
            >
              <Icon name="key" />
            </button>
            <button
              type="button"
              class="icon"
              aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}
              title="Switch theme"
              onClick={toggleTheme}
            >
              <Icon name={theme.value === "dark" ? "sun" : "moon"} />
            </button>
          </div>
        </div>
        <p class="purpose">
          Text to speech on your own server
          <span class="more">
            , with the <b>Kokoro</b> voices: hear any text, make audiobooks, give your apps a voice
          </span>
          .
        </p>
      </header>
      <main id="view" tabIndex={-1}>
        {view.value === "speak" ? (
          <SpeakView />
        ) : view.value === "books" ? (
          <BooksView />
        ) : Batching ? (
          <Batching />
        ) : (
          <p class="empty">Loading…</p>
        )}
      </main>
      <PlayerBar />
      <KeyDialog />
      <VoiceDialog />
      <PronunciationDialog />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("view")?.focus();
}
