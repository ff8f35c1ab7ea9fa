// A canvas in device pixels, redrawn when a signal that it read has changed.
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
      const canvasHeight = canvas.clientHeight;
      const ratio = devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(canvasHeight * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(canvasHeight * ratio);
      }
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, canvasHeight);
      latest.current(pen, width, canvasHeight);
    };
    // Drawing inside an effect subscribes to every signal that `draw` reads.
    const stop = effect(() => {
      theme.value;
      paint();
    });
    const resize = new ResizeObserver(() => {
      frame ||= requestAnimationFrame(paint);
    });
    resize.observe(canvas);
    return () => {
      stop();
      resize.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  return <canvas ref={element} role="img" aria-label={label} style={{ height: `${height}px` }} />;
}
