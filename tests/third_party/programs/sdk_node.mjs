// The Node SDKs of ElevenLabs, Cartesia and Deepgram against a server: `node sdk_node.mjs URL`. Each speech call,
// but for Cartesia's WebSocket, which insists on TLS.
import Cartesia from "@cartesia/cartesia-js"
import { DeepgramClient } from "@deepgram/sdk"
import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js"

const url = process.argv[2]
const own = JSON.parse(process.env.OWN)
const raw = { container: "raw", encoding: "pcm_s16le", sample_rate: 24000 }
const slack = 0.1 // allowed difference of the length, as a share

const eleven = new ElevenLabsClient({ baseUrl: url, apiKey: "any" })
const cartesia = new Cartesia({ baseURL: url, apiKey: "any" })
const sockets = url.replace("http", "ws")
const deepgram = new DeepgramClient({
  apiKey: "any",
  environment: { base: url, production: sockets, agent: sockets, agentRest: url },
})

function checkSeconds(seconds) {
  if (Math.abs(seconds - own.seconds) > slack * own.seconds) throw new Error(`${seconds} s, not ${own.seconds}`)
}

const check = (nBytes) => checkSeconds(nBytes / 48000)

async function bytesOf(stream) {
  let n = 0
  for await (const piece of stream) n += piece.length ?? piece.byteLength
  return n
}

const nBase64 = (text) => Buffer.from(text ?? "", "base64").length

const calls = {
  "elevenlabs speech": async () => {
    const options = { text: own.text, outputFormat: "pcm_24000" }
    check(await bytesOf(await eleven.textToSpeech.convert("af_heart", options)))
    check(await bytesOf(await eleven.textToSpeech.stream("af_heart", options)))
    const whole = await eleven.textToSpeech.convertWithTimestamps("af_heart", options)
    check(nBase64(whole.audioBase64))
    let n = 0
    for await (const line of await eleven.textToSpeech.streamWithTimestamps("af_heart", options))
      n += nBase64(line.audioBase64)
    check(n)
  },
  "elevenlabs dialogue": async () => {
    const inputs = own.sentences.map((text) => ({ text, voiceId: "af_heart" }))
    check(await bytesOf(await eleven.textToDialogue.convert({ inputs, outputFormat: "pcm_24000" })))
    check(await bytesOf(await eleven.textToDialogue.stream({ inputs, outputFormat: "pcm_24000" })))
  },
  "elevenlabs lists": async () => {
    if ((await eleven.voices.search()).voices.length !== 54) throw new Error("voices")
    if ((await eleven.voices.get("af_heart")).voiceId !== "af_heart") throw new Error("voice")
    if (!(await eleven.models.list()).length) throw new Error("models")
    if ((await eleven.user.subscription.get()).status !== "active") throw new Error("subscription")
  },
  "cartesia speech": async () => {
    const options = { model_id: "sonic-3", transcript: own.text, voice: { mode: "id", id: "af_heart" } }
    const whole = await cartesia.tts.generate({ ...options, output_format: raw })
    check((await whole.arrayBuffer()).byteLength)
    let n = 0
    for await (const event of await cartesia.tts.generateSSE({ ...options, output_format: raw }))
      n += event.type === "chunk" ? nBase64(event.data) : 0
    check(n)
  },
  "cartesia voices": async () => {
    for await (const voice of await cartesia.voices.list()) if (!voice.id) throw new Error("voice")
  },
  "deepgram speech": async () => {
    const options = { text: own.text, model: "aura-2-thalia-en", encoding: "linear16", container: "none" }
    check(await bytesOf((await deepgram.speak.v1.audio.generate(options)).stream()))
  },
  "deepgram socket": async () => {
    const connection = await deepgram.speak.v1.connect({ model: "aura-2-thalia-en", encoding: "linear16", sample_rate: 24000 })
    let n = 0
    const flushed = new Promise((resolve, reject) => {
      connection.on("message", (message) => {
        if (message?.type === "Flushed") resolve()
        else if (!message?.type) n += message.byteLength ?? message.length ?? message.size
      })
      connection.on("error", reject)
    })
    connection.connect()
    await connection.waitForOpen()
    for (const text of own.sentences) connection.sendText({ type: "Speak", text })
    connection.sendFlush({ type: "Flush" })
    await flushed
    connection.close()
    check(n)
  },
}

let failures = 0
for (const [name, call] of Object.entries(calls)) {
  try {
    await Promise.race([call(), new Promise((_, reject) => setTimeout(() => reject(new Error("timeout")), 30000).unref())])
    console.log(`ok\t${name}`)
  } catch (error) {
    failures += 1
    console.log(`failed\t${name}: ${String(error?.stack ?? error).slice(0, 400).replaceAll("\n", " ")}`)
  }
}
process.exit(failures)
