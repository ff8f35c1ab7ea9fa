// A slider whose filled part begins at its neutral value: in the middle where both directions exist.
interface SliderProps {
  id: string;
  min: number;
  max: number;
  step: number;
  value: number;
  neutral: number;
  valueText?: string;
  onInput: (value: number) => void;
}

export function Slider({ id, min, max, step, value, neutral, valueText, onInput }: SliderProps) {
  const share = (of: number) => (100 * (of - min)) / (max - min);
  const style = {
    "--from": `${share(Math.min(neutral, value))}%`,
    "--to": `${share(Math.max(neutral, value))}%`,
  };
  return (
    <input
      id={id}
      class="filled"
      type="range"
      style={style}
      min={min}
      max={max}
      step={step}
      value={value}
      aria-valuetext={valueText}
      onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
    />
  );
}
