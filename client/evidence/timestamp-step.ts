// The step of a replay about outside time: replies of time-stamp authorities (RFC 3161) in a package, each for a head of the log.
import { noteFault, readCheckpoint, type VerifierKey } from '../chain/checkpoint.ts'
import type { SignatureCheck } from '../chain/signature.ts'
import { Note } from '../checks.ts'
import { MAX_REPLY_BYTES, type Timestamp, type TimestampVerifier } from '../timestamp.ts'
import type { ProvedReceipt } from './manifest.ts'
import { Fault, type Judgement, Unchecked } from './steps.ts'
import type { Files } from './zip.ts'

export interface StampOptions {
  /** A verifier that knows the roots that count. Called only where there is a reply. */
  open(): Promise<TimestampVerifier>
  /** The caller named these roots: then a reply without a path to one of them is a fault. */
  isGiven: boolean
}

const FOLDER = 'evidence/timestamps/'
const MOST_REPLIES = 50
/** How far the clock of a service may be ahead of the authority's. */
const MAX_SKEW_MS = 300_000

/**
 * @param receipt of the manifest, which is in the tree of its checkpoint
 * @param keys of the log, where they are known
 */
export async function judgeTimestamps(
  files: Files,
  { attestation, checkpoint }: ProvedReceipt,
  keys: readonly VerifierKey[] | undefined,
  { open, isGiven }: StampOptions,
  signatureCheck?: SignatureCheck,
): Promise<Judgement> {
  const verifier = await open()
  const head = readCheckpoint(checkpoint)
  const stamps: Timestamp[] = []
  const strangers = new Set<string>()
  let elsewhere = 0
  for (const { name, reply, note } of repliesIn(files)) {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(note)
    const of = readCheckpoint(text)
    if (!of) throw new Fault(`${name}.note is no checkpoint`)
    const unsigned = keys && noteFault(text, keys, signatureCheck)
    if (unsigned) throw new Fault(`${name}.note ${unsigned}`)
    const verdict = await verifier.verify(reply, note)
    if (!verdict.ok && (isGiven || !verdict.isUntrusted)) throw new Fault(`${name}.tsr: ${verdict.problem}`)
    const isOfHead = of.tree_size === head?.tree_size && of.root_hash === head.root_hash
    if (verdict.ok && isOfHead) stamps.push(verdict.stamp)
    else if (verdict.ok) elsewhere++
    else strangers.add(verdict.stamp?.authority ?? 'an authority without a name')
  }
  const first = stamps.sort((one, other) => Date.parse(one.time) - Date.parse(other.time))[0]
  if (first) return datedBy(first, stamps.length - 1, attestation.ts_ms)
  if (strangers.size > 0) return new Unchecked(`no trusted root leads to ${[...strangers].join(', ')} (--timestamp-ca)`)
  if (elsewhere > 0)
    return new Unchecked('the replies are about other heads of the log than the one that the proof leads to')
  return new Unchecked('the package has none: the times are by the clock of the service')
}

function datedBy({ authority, time }: Timestamp, others: number, ts_ms: number): Note {
  if (ts_ms > Date.parse(time) + MAX_SKEW_MS)
    throw new Fault(`the receipt of the manifest says a later time than ${time}, at which its head was stamped`)
  const more = others > 0 ? `; ${others} more replies say the same or later` : ''
  return new Note(`the receipt of the manifest existed at ${time}, by ${authority}${more}`)
}

function repliesIn(files: Files): { name: string; reply: Uint8Array; note: Uint8Array }[] {
  const names = [...files.keys()].filter((name) => name.startsWith(FOLDER))
  const stranger = names.find((name) => !/^[^/]+\/[^/]+\/\d{1,6}\.(tsr|note)$/.test(name))
  if (stranger) throw new Fault(`${stranger} is neither a reply nor a note`)
  const numbered = [...new Set(names.map((name) => name.replace(/\.\w+$/, '')))]
  if (numbered.length > MOST_REPLIES) throw new Fault(`there are more than ${MOST_REPLIES} replies`)
  return numbered.map((name) => {
    const [reply, note] = [files.get(`${name}.tsr`), files.get(`${name}.note`)]
    if (!reply || !note) throw new Fault(`${name}.${reply ? 'note' : 'tsr'} is missing`)
    if (reply.length > MAX_REPLY_BYTES) throw new Fault(`${name}.tsr is longer than ${MAX_REPLY_BYTES} bytes`)
    return { name, reply, note }
  })
}
