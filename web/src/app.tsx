// The frame of the page: header, two views, one player below both.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Icon } from "./icons";
import { KeyDialog } from "./key-dialog";
import { PlayerBar } from "./player-bar";
import { parseLink } from "./request";
import { key, keyDialogOpen } from "./server";
import { SpeakView } from "./speak/view";
import { request } from "./state";
import { theme, toggleTheme } from "./theme";

const VIEWS = { speak: "Speak", batching: "Live batching" } as const;
type View = keyof typeof VIEWS;

const view = signal<View>(viewOf(location.hash));
const batching = signal<ComponentType | null>(null);

function viewOf(fragment: string): View {
  return fragment.startsWith("#batching") ? "batching" : "speak";
}

function onHashChange(): void {
  view.value = viewOf(location.hash);
  const linked = parseLink(location.hash);
  if (linked) request.value = linked;
  document.title = view.value === "speak" ? "tutti" : "tutti: live batching";
  // The charts are fetched with their view.
  if (view.value === "batching" && !batching.value) {
    void import("./batching/view").then((part) => {
      batching.value = part.BatchingView;
    });
  }
}

export function App() {
  useEffect(() => {
    addEventListener("hashchange", onHashChange);
    onHashChange();
  }, []);
  const Batching = batching.value;
  return (
    <>
      <header class="masthead">
        <a class="skip" href="#view" onClick={skip}>
          Skip to content
        </a>
        <a class="mark" href="#speak" aria-label="tutti, start page">
          <span aria-hidden="true">tutti</span>
        </a>
        <p class="motto">All voices, one pass.</p>
        <nav aria-label="Views">
          {(Object.keys(VIEWS) as View[]).map((name) => (
            <a key={name} href={`#${name}`} aria-current={view.value === name ? "page" : undefined}>
              {VIEWS[name]}
            </a>
          ))}
        </nav>
        <div class="tools">
          <a class="quiet" href="/docs">
            API reference
          </a>
          <button
            type="button"
            class="icon"
            aria-label={key.value ? "Change the API key" : "Enter an API key"}
            title="API key"
            onClick={() => (keyDialogOpen.value = true)}
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
      </header>
      <main id="view" tabIndex={-1}>
        {view.value === "speak" ? <SpeakView /> : Batching ? <Batching /> : <p class="empty">Loading…</p>}
      </main>
      <PlayerBar />
      <KeyDialog />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("view")?.focus();
}
