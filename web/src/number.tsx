// A large number with its label.
export function LabelledNumber({ name, value, unit, id }: { name: string; value: string; unit?: string; id?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b id={id}>{value}</b>
        {unit ? <span> {unit}</span> : null}
      </dd>
    </div>
  );
}
