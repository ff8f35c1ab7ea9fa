// A voice, or several with weights: af_bella(2)+af_sky(1). A voice with a weight below zero is moved away from.
export interface Part {
  name: string;
  weight: number;
}

export const MOST_PARTS = 8;
const TERM = /([+-]?)\s*([A-Za-z]\w*)\s*(?:\(\s*([\d.]+)\s*\))?\s*/y;

/** The blend as the server reads it. One voice alone is its bare name; the first may not be one to move away from. */
export function writeBlend(parts: Part[]): string {
  const heard = parts.filter((part) => part.weight !== 0);
  heard.sort((one, other) => Number(one.weight < 0) - Number(other.weight < 0));
  if (heard.length < 2 || heard[0]!.weight < 0) return (heard.find((part) => part.weight > 0) ?? parts[0])!.name;
  return heard.map(({ name, weight }, n) => `${weight < 0 ? "-" : n ? "+" : ""}${name}(${Math.abs(weight)})`).join("");
}

/** The parts of a blend, none where it cannot be read. */
export function readBlend(written: string): Part[] {
  const parts: Part[] = [];
  TERM.lastIndex = 0;
  while (TERM.lastIndex < written.length && parts.length < MOST_PARTS) {
    const term = TERM.exec(written);
    if (!term || parts.length > 0 !== Boolean(term[1])) return [];
    parts.push({ name: term[2]!, weight: Number(term[3] ?? 1) * (term[1] === "-" ? -1 : 1) });
  }
  return parts;
}
