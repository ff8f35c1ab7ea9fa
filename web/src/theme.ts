// Light or dark: as the system likes it until somebody chooses.
import { signal } from "@preact/signals";

const KEPT = "tutti.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
export const calm = matchMedia("(prefers-reduced-motion: reduce)");
export type Theme = "light" | "dark";

const chosen = localStorage.getItem(KEPT);
export const theme = signal<Theme>(chosen === "light" || chosen === "dark" ? chosen : system());

function system(): Theme {
  return dark.matches ? "dark" : "light";
}

function show(next: Theme): void {
  document.documentElement.dataset.theme = next;
  theme.value = next;
}

export function turn(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  if (next === system()) localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, next);
  show(next);
}

dark.addEventListener("change", () => localStorage.getItem(KEPT) === null && show(system()));
show(theme.value);

const known = new Map<string, string>();

/** A colour of the style sheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  const at = `${theme.peek()} ${name}`;
  let found = known.get(at);
  if (!found) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    if (found) known.set(at, found);
  }
  return found;
}
