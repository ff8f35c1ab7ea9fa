// Batching, live: who waits, which rows leave together and why, how early everyone hears.
import { useEffect } from "preact/hooks";
import "./batching.css";
import { Charts } from "./charts";
import { watch } from "./feed";
import { Lanes } from "./lanes";
import { Last } from "./last";
import { Load } from "./load";
import { Queue } from "./queue";
import { Lately, Rules, Standing } from "./rules";

export function BatchingView() {
  useEffect(watch, []);
  return (
    <div class="batching">
      <div class="lead">
        <h1>Whoever is ready comes in.</h1>
        <p>
          Everyone who asks for speech meets in one queue. Whenever the device is free, the most urgent rows leave
          together as one batch, first through the acoustic stage, then, cut afresh, through the vocoder.
        </p>
        <Standing />
        <Lately />
      </div>
      <Load />
      <Lanes />
      <Last />
      <Queue />
      <Rules />
      <Charts />
    </div>
  );
}
