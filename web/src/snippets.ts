// The same request as code that runs as it stands.
import { type Ask, type Body, body } from "./ask";

export interface Snippet {
  name: string;
  code: string;
}

const OPENAI = ["input", "voice", "speed"]; // what its library has words for; the rest goes into extra_body

export function snippets(ask: Ask, format: string, origin: string, withKey: boolean): Snippet[] {
  const asked = { ...body(ask), response_format: format };
  return [
    { name: "curl", code: curl(asked, format, origin, withKey) },
    { name: "Python", code: python(asked, format, origin, withKey) },
    { name: "JavaScript", code: javascript(asked, origin, withKey) },
    { name: "tutti.client", code: ours(asked, format, origin, withKey) },
  ];
}

function curl(asked: Body, format: string, origin: string, withKey: boolean): string {
  const told = JSON.stringify(asked).replaceAll("'", "'\\''");
  const key = withKey ? ' \\\n  -H "Authorization: Bearer $TUTTI_KEY"' : "";
  return `curl ${origin}/v1/audio/speech -o speech.${format} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d '${told}'`;
}

function python(asked: Body, format: string, origin: string, withKey: boolean): string {
  const { known, extra } = split(asked);
  const more = Object.keys(extra).length ? `\n    extra_body=${literal(extra)},` : "";
  const key = withKey ? 'os.environ["TUTTI_KEY"]' : '"-"';
  return `${withKey ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${key})
speech = client.audio.speech.create(
    model="kokoro",
${named(known)}${more}
)
speech.write_to_file("speech.${format}")`;
}

function javascript(asked: Body, origin: string, withKey: boolean): string {
  const key = withKey ? ", Authorization: `Bearer ${process.env.TUTTI_KEY}`" : "";
  return `const reply = await fetch("${origin}/v1/audio/speech", {
  method: "POST",
  headers: { "Content-Type": "application/json"${key} },
  body: JSON.stringify(${JSON.stringify(asked, null, 2).replaceAll("\n", "\n  ")}),
});
if (!reply.ok) throw new Error((await reply.json()).error.message);
const speech = await reply.arrayBuffer();`;
}

function ours(asked: Body, format: string, origin: string, withKey: boolean): string {
  const { input, response_format: _, ...wishes } = asked;
  const key = withKey ? ', api_key=os.environ["TUTTI_KEY"]' : "";
  return `${withKey ? "import os\n\n" : ""}from tutti.client import Client

with Client("${origin}"${key}) as client:
    speech = client.speak(
        ${literal(input!)},
${named({ ...wishes, format }, 8)}
    )
    speech.save("speech.${format}")`;
}

function split(asked: Body): { known: Body; extra: Body } {
  const known: Body = {};
  const extra: Body = {};
  for (const [name, value] of Object.entries(asked)) {
    (OPENAI.includes(name) || name === "response_format" ? known : extra)[name] = value;
  }
  return { known, extra };
}

const named = (values: Body, indent = 4): string =>
  Object.entries(values)
    .map(([name, value]) => `${" ".repeat(indent)}${name}=${literal(value)},`)
    .join("\n");

/** A value as both Python and JSON write it. */
function literal(value: unknown): string {
  return JSON.stringify(value);
}
