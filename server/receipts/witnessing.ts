// Cosignatures of witnesses (C2SP tlog-witness, add-checkpoint). A witness signs a head only if it continues the last head it
// signed, so the log cannot show different histories to different readers. This is the log's side. It fails open: the
// published checkpoint lacks the cosignature of a witness that is away or refuses, and nothing stops.
import { verify } from 'node:crypto'
import { z } from 'zod'
import { readBody } from '../../client/bytes.ts'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { proveConsistency, storedNodes } from './archive.ts'
import { publicKeyOf, readNote, readSignatureLine, signatureLine } from './checkpoint.ts'
import { findHead } from './head.ts'
import type { Witness } from './witness-list.ts'

export interface Witnessing extends AsyncDisposable {
  /** Runs a round unless another process has just taken it. Answers how many witnesses signed, or null. */
  runOnce(): Promise<number | null>
}

const INTERVAL_S = 10
const ANSWER_TIMEOUT_MS = 5000
/** A published checkpoint that is older does not count: no process publishes, and the head is served instead. */
const STALE_S = 3 * INTERVAL_S

/** The published checkpoint with its cosignatures, or null without witnesses or without a recent round. */
export async function findPublished(core: { db: Database; config: { witnesses: Witness[] } }): Promise<string | null> {
  if (core.config.witnesses.length === 0) return null
  return core.db.maybeOneFirst(sql.prepared('find_published_checkpoint', z.object({ checkpoint: z.string() }))`
    select checkpoint from witnessed_checkpoint where published_at > now() - ${STALE_S} * interval '1 second'`)
}

/** The checkpoint as it is served: the published one, else that of the head; empty before the first receipt. */
export async function findServed(core: { db: Database; config: { witnesses: Witness[] } }): Promise<string> {
  return (await findPublished(core)) ?? (await findHead(core.db)).checkpoint
}

interface Round {
  size: number
  /** The checkpoint with the log's own signatures. */
  note: string
  db: Database
}

/**
 * Submits the head to the witnesses every `intervalS` seconds until disposed. Of several processes one does at a time. With
 * `intervalS` 0 only `runOnce` does.
 */
export function openWitnessing(
  db: Database,
  witnesses: readonly Witness[],
  log: Logger,
  { intervalS = INTERVAL_S }: { intervalS?: number } = {},
): Witnessing {
  /** The last size that each witness signed for this process, by the witness's name. */
  const signedSizes = new Map<string, number>()

  async function runOnce() {
    const taken = await claimRound(db, intervalS)
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
      const { line, size } = await cosign(witness, round, signedSizes.get(witness.name) ?? 0)
      signedSizes.set(witness.name, size)
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

const claimed = z.object({ size: z.number(), note: z.string() })

/**
 * The present head, or null if another process has claimed a round within the interval. A stale published checkpoint is
 * replaced at once: readers have got the head since, and the next published checkpoint must not be smaller.
 */
function claimRound(db: Database, intervalS: number): Promise<z.output<typeof claimed> | null> {
  const fresh = sql.fragment`w.published_at > now() - ${STALE_S} * interval '1 second'`
  return db.maybeOne(sql.type(claimed)`
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

/** Publishes a checkpoint. A head that has not moved keeps the checkpoint with more cosignatures. */
async function publish(db: Database, size: number, checkpoint: string) {
  await db.query(sql.type(nothing)`
    update witnessed_checkpoint set tree_size = ${size}, published_at = now(),
      checkpoint = case when tree_size = ${size} and length(checkpoint) > ${checkpoint.length} then checkpoint
                        else ${checkpoint} end
    where tree_size <= ${size}`)
}

/** The witness's verified signature line. Throws when it does not sign this checkpoint. */
async function cosign(witness: Witness, round: Round, known: number): Promise<{ line: string; size: number }> {
  let answer = await submit(witness, round, Math.min(known, round.size))
  if (answer.status === 409) {
    // It has signed another size than this process knew of. It answers the size, and gets one more request.
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

/** Far more than the cosignatures of one witness. */
const MAX_ANSWER_BYTES = 16_384

/** The answer's body as text. Throws when it is longer than MAX_ANSWER_BYTES. */
async function readShort(answer: Response): Promise<string> {
  return Buffer.from(await readBody(answer, MAX_ANSWER_BYTES)).toString('utf8')
}

/** The line of the answer that is signed by the configured key. Lines by unknown keys are skipped. */
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
