// Durations as people say them.

/** Milliseconds, in seconds from one second on: 85 ms, 2.4 s, 31 s, 3 min 5 s. */
export function formatMs(ms: number): string {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : formatSeconds(ms / 1000);
}

export function formatSeconds(s: number): string {
  if (s < 59.5) return `${s.toFixed(s < 9.95 ? 1 : 0)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** A time left, no more precise than it is known: less than a minute, 25 min, 3 h 20 min, 14 h. */
export function formatLeft(s: number): string {
  const minutes = Math.round(s / 60);
  if (minutes < 1) return "less than a minute";
  if (minutes < 60) return `${minutes} min`;
  if (minutes >= 600) return `${Math.round(minutes / 60)} h`;
  const tens = 10 * Math.round(minutes / 10);
  return tens % 60 ? `${Math.floor(tens / 60)} h ${tens % 60} min` : `${tens / 60} h`;
}
