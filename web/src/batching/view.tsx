// The Live batching view: waiting jobs, batches and why they started, latencies.
import { useEffect } from "preact/hooks";
import "./batching.css";
import { Charts } from "./charts";
import { Load } from "./load";
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
          All requests share one queue. Whenever the device is free, the most urgent rows run together as one batch,
          first through the acoustic stage, then, in new batches, through the vocoder.
        </p>
        <Status />
        <RecentNumbers />
      </div>
      <Load />
      <Timeline />
      <RecentBatches />
      <Queue />
      <Policy />
      <Charts />
    </div>
  );
}
