// The hatched pattern that marks padding.
import { colour, theme } from "../theme";

let cached: { theme: string; pattern: CanvasPattern } | null = null;

export function paddingPattern(pen: CanvasRenderingContext2D): CanvasPattern {
  if (cached?.theme !== theme.value) {
    const tile = new OffscreenCanvas(6, 6);
    const ink = tile.getContext("2d")!;
    ink.strokeStyle = colour("rule-2");
    ink.lineWidth = 1.2;
    ink.beginPath();
    for (const shift of [-6, 0, 6]) {
      ink.moveTo(shift, 6);
      ink.lineTo(shift + 6, 0);
    }
    ink.stroke();
    cached = { theme: theme.value, pattern: pen.createPattern(tile, "repeat")! };
  }
  return cached.pattern;
}
