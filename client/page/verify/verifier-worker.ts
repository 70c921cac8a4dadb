// The worker of the page /verify that makes verdicts of the local verifier again: fetches the verifier from the service that
// served the page, checks each file by its digest, keeps the files in the browser, and assesses. The text and the claims stay here.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { assessLocally, type LocalAssessment, loadVerifier } from 'countersign-verifier'
import { megabytes } from './megabytes.ts'
import type { RecomputationNews, RecomputationTask, ServedFile } from './served-verifier.ts'

const CACHE = 'countersign-verifier'

addEventListener('message', async ({ data }: MessageEvent<RecomputationTask>) => {
  try {
    tell({ assessments: await recompute(data) })
  } catch (error) {
    tell({ problem: (error as Error).message })
  }
})

function tell(news: RecomputationNews) {
  postMessage(news)
}

async function recompute({ verifier, text, claims }: RecomputationTask): Promise<LocalAssessment[]> {
  const files = [verifier.runtime, verifier.tables, verifier.weights]
  const cache = await openCache(files)
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let [got, told] = [0, -1]
  const onBytes = (count: number) => {
    got += count
    const percent = Math.floor((100 * got) / total)
    if (percent > told) {
      const words = `${megabytes(got)} of ${megabytes(total)}`
      tell({ progress: { step: 'Fetching the verifier', done: { count: got, of: total, words } } })
    }
    told = percent
  }
  const [runtime, tables, model] = [
    await load(verifier.runtime, cache, onBytes),
    await load(verifier.tables, cache, onBytes),
    await load(verifier.weights, cache, onBytes),
  ]
  tell({ progress: { step: 'Starting the verifier', done: null } })
  const { tokenizer, settings } = JSON.parse(new TextDecoder().decode(tables))
  const loaded = await loadVerifier({ model, tokenizer, settings, runtime })
  const assessments: LocalAssessment[] = []
  for (const [i, claim] of claims.entries()) {
    const which = claims.length === 1 ? '' : ` for claim ${i + 1} of ${claims.length}`
    const onRead = (count: number, of: number) => {
      const words = `${count} of ${of} passages read`
      tell({ progress: { step: `Reading the text${which}`, done: { count, of, words } } })
      if (count === of) tell({ progress: { step: `Choosing the quotes${which}`, done: null } })
    }
    assessments.push(await assessLocally(loaded, text, claim, onRead))
  }
  return assessments
}

/** The bytes of a file: the copy that the browser keeps, else from the service. Bytes with another digest are never used. */
async function load(file: ServedFile, cache: Cache | null, onBytes: (count: number) => void): Promise<Uint8Array> {
  const kept = await cache?.match(file.path)
  if (kept) {
    const bytes = new Uint8Array(await kept.arrayBuffer())
    if (isOf(file, bytes)) {
      onBytes(bytes.length)
      return bytes
    }
  }
  const bytes = await download(file, onBytes)
  if (!isOf(file, bytes))
    throw new Error(`${file.path} is not what the service says it is: its SHA-256 is another one.`)
  // A browser without room for it fetches it again the next time.
  await cache?.put(file.path, new Response(bytes)).catch(() => {})
  return bytes
}

async function download(file: ServedFile, onBytes: (count: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await fetch(file.path, { credentials: 'omit' }).catch(() => null)
  const reader = answer?.ok ? answer.body?.getReader() : undefined
  if (!reader)
    throw new Error(`The service did not send ${file.path}${answer ? `, but answered ${answer.status}` : ''}.`)
  const bytes = new Uint8Array(file.bytes)
  let at = 0
  for (let part = await reader.read(); part.value; part = await reader.read()) {
    if (at + part.value.length > bytes.length) throw new Error(`${file.path} is longer than the service says.`)
    bytes.set(part.value, at)
    at += part.value.length
    onBytes(part.value.length)
  }
  return bytes
}

const isOf = (file: ServedFile, bytes: Uint8Array) => bytesToHex(sha256(bytes)) === file.sha256

/** The files that this browser keeps, without those of other verifiers. Null where the browser keeps none, as without https. */
async function openCache(files: readonly ServedFile[]): Promise<Cache | null> {
  try {
    const cache = await caches.open(CACHE)
    const paths = files.map(({ path }) => path)
    for (const request of await cache.keys())
      if (!paths.includes(new URL(request.url).pathname)) await cache.delete(request)
    return cache
  } catch {
    return null
  }
}
