// The current request as code that runs unchanged.
import { type RequestBody, requestBody, requestPath, type SpeechRequest } from "./request";

export interface Snippet {
  name: string;
  code: string;
}

const OPENAI_PARAMETERS = ["input", "voice", "speed"]; // of its library; the rest goes into extra_body

export function snippets(request: SpeechRequest, format: string, origin: string, withKey: boolean): Snippet[] {
  const fields = { ...requestBody(request), response_format: format };
  const url = origin + requestPath(request);
  const isDialogue = request.cast.length > 0; // for which OpenAI's library and ours have no call
  const inPython = isDialogue ? plainPython(fields, format, url, withKey) : python(fields, format, origin, withKey);
  const plain = [
    { name: "curl", code: curl(fields, format, url, withKey) },
    { name: "Python", code: inPython },
    { name: "JavaScript", code: javascript(fields, url, withKey) },
  ];
  return isDialogue ? plain : [...plain, { name: "tutti.client", code: tuttiClient(fields, format, origin, withKey) }];
}

function curl(fields: RequestBody, format: string, url: string, withKey: boolean): string {
  const json = JSON.stringify(fields).replaceAll("'", "'\\''");
  const key = withKey ? ' \\\n  -H "Authorization: Bearer $TUTTI_KEY"' : "";
  return `curl ${url} -o speech.${format} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d '${json}'`;
}

function python(fields: RequestBody, format: string, origin: string, withKey: boolean): string {
  const { standard, extra } = split(fields);
  const more = Object.keys(extra).length ? `\n    extra_body=${literal(extra)},` : "";
  const key = withKey ? 'os.environ["TUTTI_KEY"]' : '"-"';
  return `${withKey ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${key})
speech = client.audio.speech.create(
    model="kokoro",
${keywords(standard)}${more}
)
speech.write_to_file("speech.${format}")`;
}

function javascript(fields: RequestBody, url: string, withKey: boolean): string {
  const key = withKey ? ", Authorization: `Bearer ${process.env.TUTTI_KEY}`" : "";
  return `const response = await fetch("${url}", {
  method: "POST",
  headers: { "Content-Type": "application/json"${key} },
  body: JSON.stringify(${JSON.stringify(fields, null, 2).replaceAll("\n", "\n  ")}),
});
if (!response.ok) throw new Error((await response.json()).error.message);
const speech = await response.arrayBuffer();`;
}

function plainPython(fields: RequestBody, format: string, url: string, withKey: boolean): string {
  const key = withKey ? ', "Authorization": f"Bearer {os.environ[\'TUTTI_KEY\']}"' : "";
  return `import json
${withKey ? "import os\n" : ""}from pathlib import Path
from urllib.request import Request, urlopen

body = ${JSON.stringify(fields, null, 4)}
headers = {"Content-Type": "application/json"${key}}
with urlopen(Request("${url}", json.dumps(body).encode(), headers)) as answer:
    Path("speech.${format}").write_bytes(answer.read())`;
}

function tuttiClient(fields: RequestBody, format: string, origin: string, withKey: boolean): string {
  const { input, response_format: _, ...options } = fields;
  const key = withKey ? ', api_key=os.environ["TUTTI_KEY"]' : "";
  return `${withKey ? "import os\n\n" : ""}from tutti.client import Client

with Client("${origin}"${key}) as client:
    speech = client.speak(
        ${literal(input!)},
${keywords({ ...options, format }, 8)}
    )
    speech.save("speech.${format}")`;
}

function split(fields: RequestBody): { standard: RequestBody; extra: RequestBody } {
  const standard: RequestBody = {};
  const extra: RequestBody = {};
  for (const [name, value] of Object.entries(fields)) {
    (OPENAI_PARAMETERS.includes(name) || name === "response_format" ? standard : extra)[name] = value;
  }
  return { standard, extra };
}

const keywords = (values: RequestBody, indent = 4): string =>
  Object.entries(values)
    .map(([name, value]) => `${" ".repeat(indent)}${name}=${literal(value)},`)
    .join("\n");

/** A string or number, written the same in Python and JSON. */
function literal(value: unknown): string {
  return JSON.stringify(value);
}
