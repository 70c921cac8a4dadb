// The replies of time-stamp authorities beside an export: which part of the chain existed at which time. The file has one line of JSON
// for each reply: the checkpoint that it is about, and the whole reply.
import { decodeBase64, readBody } from './bytes.ts'
import { readCheckpoint } from './chain/checkpoint.ts'
import type { TreeHead } from './chain/merkle.ts'
import type { Check } from './checks.ts'
import { CountersignError } from './error.ts'
import { clientFailure, type Fetch } from './exchange.ts'
import { parseJson } from './json.ts'
import { closed, text } from './shape.ts'
import { MAX_REPLY_BYTES, openTimestampVerifier, type Timestamp } from './timestamp.ts'

export interface StoredReply {
  /** The checkpoint, as it was served. */
  note: string
  /** The tree of that checkpoint. */
  tree: TreeHead
  reply: Uint8Array
}

/** What a verified reply says. */
export interface OutsideTime extends Timestamp {
  tree_size: number
}

const lineShape = closed({ note: text(/./s), reply_base64: text(/./) })

/** The replies in the text of such a file. Throws a SyntaxError for other text. */
export function readReplies(lines: string): StoredReply[] {
  if (lines !== '' && !lines.endsWith('\n')) throw new SyntaxError('the last line is cut short')
  return lines
    .split('\n')
    .slice(0, -1)
    .map((line, index) => readReply(line, index + 1))
}

function readReply(line: string, number: number): StoredReply {
  const value = parseJson(line)
  const wrong = lineShape(value, '')
  if (wrong) throw new SyntaxError(`line ${number} is not a reply: ${wrong}`)
  const { note, reply_base64 } = value as { note: string; reply_base64: string }
  const reply = decodeBase64(reply_base64)
  const tree = readCheckpoint(note)
  if (!reply || reply.length > MAX_REPLY_BYTES) throw new SyntaxError(`line ${number} holds no reply`)
  if (!tree || tree.tree_size < 1) throw new SyntaxError(`line ${number} is about no checkpoint`)
  return { note, tree, reply }
}

/** Replies of one answer of the service. */
const PAGE = 100
/** Of one answer: as long as the replies of a page may be. */
const MAX_ANSWER = 16 * 1024 * 1024

/**
 * The lines of all replies about the first `serial` receipts, as the service keeps them; empty where it has none. Throws
 * CountersignError when it does not answer.
 */
export async function downloadReplies(
  baseUrl: string,
  serial: number,
  fetch: Fetch = globalThis.fetch,
): Promise<string> {
  const lines = new Set<string>()
  for (let from = 1; from <= serial; ) {
    const url = new URL(`checkpoint/timestamps?from=${from}`, `${baseUrl.replace(/\/*$/, '')}/`)
    const page = await ask(url, fetch)
    const replies = page.split('\n').slice(0, -1)
    const sizes = readReplies(page).map(({ tree }) => tree.tree_size)
    for (const [i, line] of replies.entries()) if (sizes[i]! <= serial) lines.add(`${line}\n`)
    const last = sizes.at(-1) ?? 0
    // The last size may go on in the next page.
    if (replies.length < PAGE || last <= from) break
    from = last
  }
  return [...lines].join('')
}

async function ask(url: URL, fetch: Fetch): Promise<string> {
  const reference = { idempotencyKey: null, requestId: null, recoveryToken: null }
  try {
    const answer = await fetch(url.href, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = await readBody(answer, MAX_ANSWER)
    // A service of an earlier release has no such path.
    if (answer.status === 404) return ''
    if (answer.status === 200) return new TextDecoder().decode(body)
    throw new Error(`the service answered ${answer.status}`)
  } catch (cause) {
    const failure = clientFailure('network_error', 'The service did not list its timestamps.', cause)
    throw new CountersignError(failure, reference)
  }
}

const TIMEOUT_MS = 60_000
/** How far the clock of a service may be ahead of the authority's. */
const MAX_SKEW_MS = 300_000

/** Collects the trees that replies are about while a chain is verified, and then judges the replies. */
export class OutsideTimes {
  readonly #replies: readonly StoredReply[]
  readonly #found = new Map<number, { root: string; at: number }>()
  /** For ChainVerifier. */
  readonly trees: { sizes: ReadonlySet<number>; found: (tree: TreeHead, ts_ms: number) => void }

  constructor(replies: readonly StoredReply[]) {
    this.#replies = replies
    this.trees = {
      sizes: new Set(replies.map(({ tree }) => tree.tree_size)),
      found: ({ tree_size, root_hash }, at) => this.#found.set(tree_size, { root: root_hash, at }),
    }
  }

  /**
   * @param roots certificates of trusted authorities, PEM
   * @param isGiven the caller named these roots: then a reply without a path to one of them is a fault
   */
  async judge(roots: string, isGiven: boolean): Promise<{ check: Check; times: OutsideTime[] }> {
    const verifier = await openTimestampVerifier(roots)
    const times: OutsideTime[] = []
    const unknown = new Set<string>()
    const failed = (detail: string) => ({ check: { name: 'timestamps', ok: false, detail }, times: [] })
    for (const { note, tree, reply } of this.#replies) {
      const at = `the reply about ${tree.tree_size} receipts`
      const own = this.#found.get(tree.tree_size)
      if (!own) return failed(`${at}: these are fewer`)
      if (own.root !== tree.root_hash) return failed(`${at} is about another chain`)
      const verdict = await verifier.verify(reply, new TextEncoder().encode(note))
      if (!verdict.ok && (isGiven || !verdict.isUntrusted)) return failed(`${at}: ${verdict.problem}`)
      const { stamp } = verdict
      if (!stamp) continue
      if (own.at > Date.parse(stamp.time) + MAX_SKEW_MS)
        return failed(`${at}: receipt ${tree.tree_size} says a later time than ${stamp.time}, at which it was signed`)
      if (verdict.ok) times.push({ tree_size: tree.tree_size, ...stamp })
      else unknown.add(stamp.authority)
    }
    return { check: { name: 'timestamps', ok: true, detail: describeTimes(times, unknown) }, times }
  }
}

function describeTimes(times: readonly OutsideTime[], unknown: ReadonlySet<string>): string {
  // Of the largest tree the earliest time, which says most.
  const [first, ...others] = times.toSorted(
    (one, other) => other.tree_size - one.tree_size || Date.parse(one.time) - Date.parse(other.time),
  )
  const more = others.length === 1 ? '; 1 other reply proves' : `; ${others.length} other replies prove`
  const said = first
    ? `The chain up to ${first.tree_size} existed at ${first.time}, by ${first.authority}` +
      (others.length > 0 ? `${more} an earlier part, or a later time` : '')
    : 'nothing is proved'
  if (unknown.size === 0) return said
  return `${said}; not proved: no trusted root leads to ${[...unknown].join(', ')} (--timestamp-ca)`
}
