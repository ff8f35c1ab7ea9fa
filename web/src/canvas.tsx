// A canvas as sharp as the screen, drawn again at most once a frame, whenever a signal it read has changed.
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { theme } from "./theme";

export type Draw = (pen: CanvasRenderingContext2D, width: number, height: number) => void;

export function Canvas({ draw, height, label }: { draw: Draw; height: number; label: string }) {
  const element = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    const canvas = element.current!;
    const pen = canvas.getContext("2d")!;
    let frame = 0;
    const paint = () => {
      frame = 0;
      const width = canvas.clientWidth;
      const tall = canvas.clientHeight;
      const sharp = devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * sharp) || canvas.height !== Math.round(tall * sharp)) {
        canvas.width = Math.round(width * sharp);
        canvas.height = Math.round(tall * sharp);
      }
      pen.setTransform(sharp, 0, 0, sharp, 0, 0);
      pen.clearRect(0, 0, width, tall);
      latest.current(pen, width, tall);
    };
    // Signals are read here, outside of the frame, by drawing once; from then on each change asks for a frame.
    const stop = effect(() => {
      theme.value;
      paint();
    });
    const grown = new ResizeObserver(() => {
      frame ||= requestAnimationFrame(paint);
    });
    grown.observe(canvas);
    return () => {
      stop();
      grown.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  return <canvas ref={element} role="img" aria-label={label} style={{ height: `${height}px` }} />;
}
