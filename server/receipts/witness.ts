// Witnesses see every head of the log and sign only what continues what they saw before, so that nobody can be shown another
// history. This is the asking side (C2SP tlog-witness, add-checkpoint). It fails open: a witness that is away or refuses is
// missing from the published checkpoint and stops nothing.
import { verify } from 'node:crypto'
import { z } from 'zod'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { proveConsistency, storedNodes } from './archive.ts'
import { publicKeyOf, readNote, readSignatureLine, signatureLine } from './checkpoint.ts'
import type { Witness } from './witnesses.ts'

export interface Witnessing extends AsyncDisposable {
  /** One round, if it is this process's turn: answers how many witnesses signed, or null. */
  runOnce(): Promise<number | null>
}

const INTERVAL_S = 10
const ANSWER_TIMEOUT_MS = 5000
/** After so long without a round nobody is publishing, and the head itself serves. */
const STALE_S = 3 * INTERVAL_S

/** What is published now: a checkpoint that witnesses were asked about, or null when there is none of late. */
export async function findPublished(core: { db: Database; config: { witnesses: Witness[] } }): Promise<string | null> {
  if (core.config.witnesses.length === 0) return null
  return core.db.maybeOneFirst(sql.prepared('find_published_checkpoint', z.object({ checkpoint: z.string() }))`
    select checkpoint from witnessed_checkpoint where published_at > now() - ${STALE_S} * interval '1 second'`)
}

interface Round {
  size: number
  /** The checkpoint with the log's own signatures. */
  note: string
  db: Database
}

/** Asks every ten seconds until disposed; of several processes one at a time. `intervalS` 0: only by `runOnce`. */
export function openWitnessing(
  db: Database,
  witnesses: readonly Witness[],
  log: Logger,
  { intervalS = INTERVAL_S }: { intervalS?: number } = {},
): Witnessing {
  /** The size each witness signed last, as far as this process knows. */
  const seen = new Map<string, number>()

  async function runOnce() {
    const taken = await takeTurn(db, intervalS)
    if (!taken) return null
    const round = { ...taken, db }
    const lines = await Promise.all(witnesses.map((witness) => ask(witness, round)))
    const signed = lines.filter((line) => line !== null)
    await publish(db, taken.size, taken.note + signed.join(''))
    log.debug({ event: 'witnessed', size: taken.size, signed: signed.length, asked: witnesses.length })
    return signed.length
  }

  async function ask(witness: Witness, round: Round): Promise<string | null> {
    try {
      const { line, size } = await cosign(witness, round, seen.get(witness.name) ?? 0)
      seen.set(witness.name, size)
      return line
    } catch (error) {
      log.warn({ event: 'witness_failed', witness: witness.name, err: error })
      return null
    }
  }

  const failed = (error: unknown) => log.error({ event: 'witnessing_failed', err: error })
  const rounds = intervalS > 0 ? every(intervalS * 1000, runOnce, failed, { immediate: true }) : null
  return {
    runOnce,
    async [Symbol.asyncDispose]() {
      await rounds?.[Symbol.asyncDispose]()
    },
  }
}

const turn = z.object({ size: z.number(), note: z.string() })

/**
 * The head of now, if no other process took it within the interval. What was published so long ago that the head itself has
 * been serving is replaced at once: a checkpoint that comes after it must not be smaller.
 */
function takeTurn(db: Database, intervalS: number): Promise<z.output<typeof turn> | null> {
  const fresh = sql.fragment`w.published_at > now() - ${STALE_S} * interval '1 second'`
  return db.maybeOne(sql.type(turn)`
    with head as (select serial, checkpoint from chain_head where serial > 0)
    insert into witnessed_checkpoint as w (tree_size, checkpoint, taken_at, published_at)
    select serial, checkpoint, now(), now() from head
    on conflict (one) do update set
      taken_at = now(),
      tree_size = case when ${fresh} then w.tree_size else excluded.tree_size end,
      checkpoint = case when ${fresh} then w.checkpoint else excluded.checkpoint end,
      published_at = case when ${fresh} then w.published_at else now() end
      where w.taken_at <= now() - ${intervalS} * interval '0.9 second'
    returning (select serial from head) size, (select checkpoint from head) note`)
}

/** Cosignatures of an unmoved head are not lost because a witness is away for a round. */
async function publish(db: Database, size: number, checkpoint: string) {
  await db.query(sql.type(nothing)`
    update witnessed_checkpoint set tree_size = ${size}, published_at = now(),
      checkpoint = case when tree_size = ${size} and length(checkpoint) > ${checkpoint.length} then checkpoint
                        else ${checkpoint} end
    where tree_size <= ${size}`)
}

/** The witness's signature line, verified. Throws when it does not sign, or not this. */
async function cosign(witness: Witness, round: Round, known: number): Promise<{ line: string; size: number }> {
  let answer = await submit(witness, round, Math.min(known, round.size))
  if (answer.status === 409) {
    // It has signed another size than we knew of: it says which, and is asked once more.
    const size = Number((await readShort(answer)).match(/^(\d{1,15})\n$/)?.[1] ?? Number.NaN)
    if (!(size <= round.size)) throw new Error(`it has signed ${size}, which is beyond ${round.size}`)
    answer = await submit(witness, round, size)
  }
  const body = await readShort(answer)
  if (answer.status !== 200) throw new Error(`it answered ${answer.status}: ${body.slice(0, 200)}`)
  return { line: findCosignature(witness, round.note, body), size: round.size }
}

async function submit(witness: Witness, { size, note, db }: Round, old: number): Promise<Response> {
  const hashes = old === 0 ? [] : await proveConsistency(storedNodes(db), old, size)
  const proof = hashes.map((hash) => `${Buffer.from(hash, 'hex').toString('base64')}\n`)
  return fetch(`${witness.url}/add-checkpoint`, {
    method: 'POST',
    body: `old ${old}\n${proof.join('')}\n${note}`,
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  })
}

/** Far more than the cosignatures of any witness. */
const MAX_ANSWER_BYTES = 16_384

/** Throws when there is more of it than any witness has to say. */
async function readShort(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of all lines of the answer the one by the key that is configured; others are nobody's we know. */
function findCosignature({ name, keyId, publicKey }: Witness, note: string, body: string): string {
  const text = readNote(note)?.text ?? ''
  for (const line of body.split('\n')) {
    const found = readSignatureLine(line)
    if (found?.name !== name || !found.keyId.equals(keyId) || found.signature.length !== 72) continue
    const message = `cosignature/v1\ntime ${found.signature.readBigUInt64BE(0)}\n${text}`
    if (verify(null, Buffer.from(message), publicKeyOf(publicKey), found.signature.subarray(8)))
      return signatureLine(name, keyId, found.signature)
  }
  throw new Error('its answer holds no valid cosignature by the key that is configured')
}
