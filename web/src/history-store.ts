// The history in this browser's IndexedDB, so that it survives a reload. Where there is none, it lives in the tab only.
import { Clip, toFloats, type Unspoken } from "./clip";
import type { SpeechRequest } from "./request";
import type { PlacedWord } from "./words";

const STORE = "clips";
const MAX_SAMPLES = 24_000 * 60 * 30; // half an hour in all: 86 MB

interface StoredClip {
  id: number; // milliseconds since 1970
  request: SpeechRequest;
  title: string;
  pcm: ArrayBuffer; // 16 bit
  words: PlacedWord[];
  chunkEnds: number[];
  notices: string[];
  unspoken: Unspoken;
  first_ms: number | null;
  total_ms: number | null;
  batch: number | null;
}

function open(): Promise<IDBDatabase> {
  const opening = indexedDB.open("tutti", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "id" });
  return done(opening);
}

function done<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function committed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

async function inStore<Result>(
  mode: IDBTransactionMode,
  action: (store: IDBObjectStore) => IDBRequest<Result>,
): Promise<Result | null> {
  try {
    const database = await open();
    const transaction = database.transaction(STORE, mode);
    const result = await done(action(transaction.objectStore(STORE)));
    if (mode === "readwrite") await committed(transaction);
    database.close();
    return result;
  } catch {
    return null; // no storage here, or it is full
  }
}

export async function storeClip(clip: Clip): Promise<void> {
  const { request, title } = clip;
  const stored: StoredClip = {
    id: clip.created_ms,
    request,
    title,
    pcm: toPcm(clip.pieces, clip.count.value),
    words: clip.words.value,
    chunkEnds: clip.chunkEnds.value,
    notices: clip.notices.value,
    unspoken: clip.unspoken.value,
    first_ms: clip.first_ms.value,
    total_ms: clip.total_ms.value,
    batch: clip.batch.value,
  };
  await inStore("readwrite", (store) => store.put(stored));
}

export async function removeClip(clip: Clip): Promise<void> {
  await inStore("readwrite", (store) => store.delete(clip.created_ms));
}

/** The newest stored clips, newest first; older ones are deleted. */
export async function restoreClips(max: number): Promise<Clip[]> {
  const stored = ((await inStore("readonly", (store) => store.getAll())) ?? []) as StoredClip[];
  const clips: Clip[] = [];
  let n_samples = 0;
  for (const entry of stored.sort((one, other) => other.id - one.id)) {
    n_samples += entry.pcm.byteLength / 2;
    if (clips.length < max && n_samples <= MAX_SAMPLES) clips.push(restore(entry));
    else await inStore("readwrite", (store) => store.delete(entry.id));
  }
  return clips;
}

function restore(stored: StoredClip): Clip {
  const clip = new Clip({ ...stored.request, cast: stored.request.cast ?? [] }, stored.title, stored.id);
  clip.append(toFloats(new Uint8Array(stored.pcm)));
  clip.words.value = stored.words;
  clip.chunkEnds.value = stored.chunkEnds;
  clip.notices.value = stored.notices;
  clip.unspoken.value = stored.unspoken;
  clip.first_ms.value = stored.first_ms;
  clip.total_ms.value = stored.total_ms;
  clip.batch.value = stored.batch;
  clip.end("whole");
  return clip;
}

function toPcm(pieces: Float32Array[], count: number): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(2 * count));
  let at = 0;
  for (const piece of pieces) {
    for (const sample of piece) {
      view.setInt16(at, Math.round(sample * 32768), true);
      at += 2;
    }
  }
  return view.buffer as ArrayBuffer;
}
