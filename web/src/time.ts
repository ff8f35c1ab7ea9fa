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
