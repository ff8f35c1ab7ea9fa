// Buttons that put marks around the selected words, or around the word at the cursor.
import type { RefObject } from "preact";
import { updateRequest } from "../state";

const MARKS = {
  Stress: ["[emphasis:strong]", "[/emphasis]"],
  Whisper: ["[emphasis:whispered]", "[/emphasis]"],
  Slow: ["[rate:0.8]", "[/rate]"],
  High: ["[pitch:+3]", "[/pitch]"],
  Loud: ["[volume:1.5]", "[/volume]"],
  Happy: ["[emotion:happy]", "[/emotion]"],
  Silence: ["[pause:500ms]", ""],
} as const;
type Name = keyof typeof MARKS;

export function Marks({ area }: { area: RefObject<HTMLTextAreaElement | null> }) {
  return (
    <ul class="chips" aria-label="Marks for the selected words">
      {(Object.keys(MARKS) as Name[]).map((name) => (
        <li key={name}>
          <button type="button" class="chip" title={MARKS[name].join("…")} onClick={() => mark(area.current!, name)}>
            {name}
          </button>
        </li>
      ))}
    </ul>
  );
}

function mark(area: HTMLTextAreaElement, name: Name): void {
  const [start, end] = MARKS[name];
  let { selectionStart: from, selectionEnd: to } = area;
  if (from === to && end) {
    from -= /[^\s[\]]*$/.exec(area.value.slice(0, from))![0].length;
    to += /^[^\s[\].,;:!?]*/.exec(area.value.slice(to))![0].length;
  }
  area.setRangeText(start + area.value.slice(from, to) + end, from, to, "select");
  area.focus();
  updateRequest({ text: area.value });
}
