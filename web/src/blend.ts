// A voice, or several with weights: af_bella(2)+af_sky(1). A negative weight moves away from that voice.
export interface VoiceWeight {
  name: string;
  weight: number;
}

export const MAX_VOICES = 8;
const TERM = /([+-]?)\s*([A-Za-z]\w*)\s*(?:\(\s*([\d.]+)\s*\))?\s*/y;

/** The blend in the server's syntax: a single voice is its bare name, and the first weight may not be negative. */
export function writeBlend(parts: VoiceWeight[]): string {
  const used = parts.filter((part) => part.weight !== 0);
  used.sort((one, other) => Number(one.weight < 0) - Number(other.weight < 0));
  if (used.length < 2 || used[0]!.weight < 0) return (used.find((part) => part.weight > 0) ?? parts[0])!.name;
  return used.map(({ name, weight }, n) => `${weight < 0 ? "-" : n ? "+" : ""}${name}(${Math.abs(weight)})`).join("");
}

/** The voices of a blend; empty if it cannot be parsed. */
export function parseBlend(expression: string): VoiceWeight[] {
  const parts: VoiceWeight[] = [];
  TERM.lastIndex = 0;
  while (TERM.lastIndex < expression.length && parts.length < MAX_VOICES) {
    const term = TERM.exec(expression);
    if (!term || parts.length > 0 !== Boolean(term[1])) return [];
    parts.push({ name: term[2]!, weight: Number(term[3] ?? 1) * (term[1] === "-" ? -1 : 1) });
  }
  return parts;
}
