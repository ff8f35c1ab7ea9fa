// Speak: a text, a voice, and how it was made.
import { trouble } from "../desk";
import { Compare } from "./compare";
import { Figures } from "./figures";
import { History } from "./history";
import { Mixer } from "./mixer";
import { Prosody } from "./prosody";
import { Score } from "./score";
import { Take } from "./take";
import { Text } from "./text";
import { Voices } from "./voices";

export function SpeakView() {
  return (
    <div class="speak">
      <h1 class="hidden">Speak</h1>
      <div class="column">
        <Text />
        <p class="trouble" role="alert">
          {trouble.value}
        </p>
        <Score />
        <Figures />
        <Compare />
        <Take />
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
