// Padding: slanted lines, as on a plan.
import { colour, theme } from "../theme";

let made: { theme: string; pattern: CanvasPattern } | null = null;

export function hatch(pen: CanvasRenderingContext2D): CanvasPattern {
  if (made?.theme !== theme.value) {
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
    made = { theme: theme.value, pattern: pen.createPattern(tile, "repeat")! };
  }
  return made.pattern;
}
