// The frame: two views, one player beneath both.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { ask } from "./desk";
import { fromLink } from "./ask";
import { Icon } from "./icons";
import { KeyDialog } from "./keydialog";
import { key, keyWanted } from "./server";
import { SpeakView } from "./speak/view";
import { theme, turn } from "./theme";
import { Transport } from "./transport";

const VIEWS = { speak: "Speak", batching: "Batching, live" } as const;
type View = keyof typeof VIEWS;
const MARKINGS = { speak: "solo", batching: "tutti" };

const view = signal<View>(named(location.hash));
const batching = signal<ComponentType | null>(null);

function named(fragment: string): View {
  return fragment.startsWith("#batching") ? "batching" : "speak";
}

function follow(): void {
  view.value = named(location.hash);
  const told = fromLink(location.hash);
  if (told) ask.value = told;
  document.title = view.value === "speak" ? "tutti" : "tutti: batching, live";
  // Charts are fetched when somebody wants to see them.
  if (view.value === "batching" && !batching.value) {
    void import("./batching/view").then((part) => {
      batching.value = part.BatchingView;
    });
  }
}

export function App() {
  useEffect(() => {
    addEventListener("hashchange", follow);
    follow();
  }, []);
  const Batching = batching.value;
  return (
    <>
      <header class="masthead">
        <a class="skip" href="#view" onClick={skip}>
          Skip to the view
        </a>
        <a class="mark" href="#speak" aria-label="tutti, the first view">
          <span aria-hidden="true">tutti</span>
        </a>
        <p class="motto">All voices, one pass.</p>
        <nav aria-label="Views">
          {(Object.keys(VIEWS) as View[]).map((name) => (
            <a key={name} href={`#${name}`} aria-current={view.value === name ? "page" : undefined}>
              {VIEWS[name]} <i aria-hidden="true">{MARKINGS[name]}</i>
            </a>
          ))}
        </nav>
        <div class="tools">
          <a class="quiet" href="/docs">
            Reference
          </a>
          <button
            type="button"
            class="icon"
            aria-label={key.value ? "Change the API key" : "Enter an API key"}
            title="API key"
            onClick={() => (keyWanted.value = true)}
          >
            <Icon name="key" />
          </button>
          <button
            type="button"
            class="icon"
            aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}
            title="Light or dark"
            onClick={turn}
          >
            <Icon name={theme.value === "dark" ? "sun" : "moon"} />
          </button>
        </div>
      </header>
      <main id="view" tabIndex={-1}>
        {view.value === "speak" ? <SpeakView /> : Batching ? <Batching /> : <p class="empty">One moment…</p>}
      </main>
      <Transport />
      <KeyDialog />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("view")?.focus();
}
