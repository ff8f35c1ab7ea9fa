// The Live batching view: waiting jobs, batches and why they started, latencies.
import { useEffect } from "preact/hooks";
import "./batching.css";
import { Charts } from "./charts";
import { Load, PolicyComparison } from "./load";
import { Policy, RecentNumbers, Status } from "./policy";
import { Queue } from "./queue";
import { RecentBatches } from "./recent";
import { watch } from "./stats";
import { Timeline } from "./timeline";

export function BatchingView() {
  useEffect(watch, []);
  return (
    <div class="batching">
      <div class="lead">
        <h1>Live batching</h1>
        <p>
          When several listeners ask at once, this server takes their sentences through the model together, the most
          urgent first, so that nobody waits for a stranger's speech to end.
        </p>
      </div>
      <Load />
      <section class="now" aria-label="Now">
        <Status />
        <RecentNumbers />
      </section>
      <Timeline />
      <RecentBatches />
      <Queue />
      <div class="stack">
        <PolicyComparison />
        <Policy />
      </div>
      <Charts />
    </div>
  );
}
