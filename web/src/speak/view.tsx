// The Speak view: a text, a voice, and the numbers of the result.
import { ProblemBox } from "../problem-box";
import { problem, retry } from "../state";
import { Cast } from "./cast";
import { Compare } from "./compare";
import { Export } from "./export";
import { History } from "./history";
import { Mixer } from "./mixer";
import { Numbers } from "./numbers";
import { Prosody } from "./prosody";
import { Reading } from "./reading";
import { Text } from "./text";
import { Voices } from "./voices";
import { Waveform } from "./waveform";

export function SpeakView() {
  return (
    <div class="speak">
      <h1 class="hidden">Speak a text</h1>
      <div class="column">
        <Text />
        <Cast />
        <Reading />
        <ProblemBox problem={problem.value} onRetry={retry} />
        <Waveform />
        <Numbers />
        <Compare />
        <Export />
        <History />
      </div>
      <div class="column">
        <Voices />
        <Mixer />
        <Prosody />
      </div>
    </div>
  );
}
