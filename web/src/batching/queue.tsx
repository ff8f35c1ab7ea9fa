// Waiting jobs by class and age, as dots on a line; late ones have a ring.
import { Canvas } from "../canvas";
import { colour } from "../theme";
import { CLASSES, type Job, STAGES, type Stage } from "./events";
import { tick } from "./stats";

const HEIGHT = 96;
const LINES: Record<string, number> = { first: 22, next: 47, bulk: 72 };
const MIN_SPAN_MS = 500; // width of a line while all jobs are younger

export function Queue() {
  const now = tick.value;
  return (
    <section class="queue" aria-labelledby="queue-title">
      <h2 id="queue-title">Queue</h2>
      {STAGES.map((stage) => (
        <div key={stage}>
          <p class="row spread">
            <i class="stage">{stage}</i>
            <span class="faint">
              {CLASSES.map((name) => (
                <span key={name} class="count" data-class={name}>
                  {name} <b>{now?.queue[stage][name] ?? 0}</b>
                </span>
              ))}
            </span>
          </p>
          <Canvas
            height={HEIGHT}
            draw={(pen, width) => draw(pen, width, stage)}
            label={`Jobs waiting for the ${stage} stage, by class and age`}
          />
        </div>
      ))}
      <p class="faint">
        {now?.waiting
          ? `${now.waiting} ${now.waiting === 1 ? "job" : "jobs"} waiting, ${(now.backlog_ms / 1000).toFixed(1)} s of work.`
          : "No jobs waiting."}
      </p>
    </section>
  );
}

function draw(pen: CanvasRenderingContext2D, width: number, stage: Stage): void {
  const jobs = tick.value?.queue[stage].jobs ?? [];
  const oldest_ms = Math.max(MIN_SPAN_MS, ...jobs.map((job) => job.age_ms));
  const labelWidth = 38;
  pen.font = `italic 13px ${colour("serif")}`;
  for (const [name, y] of Object.entries(LINES)) {
    pen.fillStyle = colour("staff");
    pen.fillRect(labelWidth, y, width - labelWidth, 1);
    pen.fillStyle = colour("ink-2");
    pen.fillText(name, 0, y + 4);
  }
  for (const job of jobs)
    drawJob(pen, job, labelWidth + 8 + (width - labelWidth - 20) * (1 - job.age_ms / oldest_ms), LINES[job.class]!);
  pen.fillStyle = colour("ink-2");
  pen.fillText(`${(oldest_ms / 1000).toFixed(1)} s ago`, labelWidth, HEIGHT - 4);
  pen.textAlign = "right";
  pen.fillText("now", width, HEIGHT - 4);
  pen.textAlign = "left";
}

function drawJob(pen: CanvasRenderingContext2D, job: Job, x: number, y: number): void {
  const size = 4 + Math.min(4, Math.sqrt(job.size) / 5);
  pen.fillStyle = colour(`c-${job.class}`);
  pen.beginPath();
  pen.ellipse(x, y, size * 1.25, size, -0.35, 0, 7);
  pen.fill();
  if (job.due_ms < 0) {
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 1.5;
    pen.stroke();
  }
}
