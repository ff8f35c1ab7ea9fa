// Light or dark theme: the system's, until the user chooses.
import { signal } from "@preact/signals";

const THEME_STORAGE = "tutti.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
export type Theme = "light" | "dark";

const chosen = localStorage.getItem(THEME_STORAGE);
export const theme = signal<Theme>(chosen === "light" || chosen === "dark" ? chosen : systemTheme());

function systemTheme(): Theme {
  return dark.matches ? "dark" : "light";
}

function applyTheme(next: Theme): void {
  document.documentElement.dataset.theme = next;
  theme.value = next;
}

export function toggleTheme(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  if (next === systemTheme()) localStorage.removeItem(THEME_STORAGE);
  else localStorage.setItem(THEME_STORAGE, next);
  applyTheme(next);
}

dark.addEventListener("change", () => localStorage.getItem(THEME_STORAGE) === null && applyTheme(systemTheme()));
applyTheme(theme.value);

const colours = new Map<string, string>();

/** A colour of the style sheet, for drawing on a canvas. */
export function colour(name: string): string {
  const cacheKey = `${theme.peek()} ${name}`;
  let value = colours.get(cacheKey);
  if (!value) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    if (value) colours.set(cacheKey, value);
  }
  return value;
}
