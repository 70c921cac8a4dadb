// A log of twenty receipts under three receipt keys and two checkpoint keys, as the service publishes it.
import type { Attestation } from '../../client/verification.ts'
import { jcs, sha256 } from '../client/issuer.ts'
import {
  CHECKPOINT_KEY,
  type IssuerKey,
  issueCheckpoint,
  issueExport,
  issueReceipt,
  issuerKey,
  keyRecord,
  VKEY,
  verifierKey,
} from '../client/log-issuer.ts'
import { hex, pinOf, pointOf, treeOf } from './parts.ts'

export const FIRST = issuerKey(1)
const SECOND = issuerKey(3)
export const NEXT_CHECKPOINT = issuerKey(4)
const THIRD = issuerKey(5)

class Log {
  readonly chain: Attestation[] = []

  append(fields: Partial<Attestation>, key: IssuerKey): Attestation {
    const serial = this.chain.length + 1
    const prev_hash = this.chain.at(-1)?.receipt_hash ?? '0'.repeat(64)
    this.chain.push(issueReceipt({ serial, prev_hash, ...fields }, key))
    return this.chain.at(-1)!
  }

  /** The receipt by which one key introduces another. */
  introduce(next: IssuerKey, use: 'receipt' | 'checkpoint', by: IssuerKey): Attestation {
    const record = keyRecord(next, use === 'receipt' ? this.chain.length + 2 : null, use)
    return this.append({ subject_sha256: sha256(jcs(record)), requested_by: 'key-rotation', label: `${use}-key` }, by)
  }
}

const log = new Log()
const LABELS = ['invoice 7', '', 'caf\u00e9 "quoted" \\ \u{1f600} \u2028', null]
const account = (n: number, key: IssuerKey) =>
  log.append({ requested_by: 'kelby', label: LABELS[n % LABELS.length]! }, key)
log.append({ requested_by: 'source-verification' }, FIRST)
for (let n = 0; n < 4; n++) account(n, FIRST)
const toSecond = log.introduce(SECOND, 'receipt', FIRST)
for (let n = 0; n < 4; n++) account(n, SECOND)
const toCheckpoint = log.introduce(NEXT_CHECKPOINT, 'checkpoint', SECOND)
log.append({ requested_by: 'lease' }, SECOND)
// Time may stand still.
log.append({ requested_by: 'lease', ts_ms: log.chain.at(-1)!.ts_ms }, SECOND)
const toThird = log.introduce(THIRD, 'receipt', SECOND)
for (let n = 0; n < 6; n++) account(n, THIRD)
export const { chain } = log

function published(
  key: IssuerKey,
  use: string,
  more: { last?: number; introduction?: Attestation; retired?: boolean },
) {
  const { last, introduction, retired = last !== undefined } = more
  return {
    key_id: key.key_id,
    use,
    alg: 'Ed25519',
    pubkey_hex: key.pubkey_hex,
    status: retired ? 'retired' : 'active',
    first_serial: use === 'receipt' ? (introduction?.serial ?? 0) + 1 : null,
    last_serial: last ?? null,
    introduced_by: introduction?.serial ?? null,
    created_at: new Date(introduction?.ts_ms ?? chain[0]!.ts_ms).toISOString(),
    vkey: use === 'checkpoint' ? verifierKey(key) : null,
    introduction: introduction ?? null,
  }
}

/** As `GET /v1/keys` answers. */
const keys = [
  published(FIRST, 'receipt', { last: toSecond.serial }),
  published(CHECKPOINT_KEY, 'checkpoint', { retired: true }),
  published(SECOND, 'receipt', { last: toThird.serial, introduction: toSecond }),
  published(NEXT_CHECKPOINT, 'checkpoint', { introduction: toCheckpoint }),
  published(THIRD, 'receipt', { introduction: toThird }),
]

/** The key before the last signs on until the next change. */
export const checkpoint = issueCheckpoint(chain, [NEXT_CHECKPOINT, CHECKPOINT_KEY])
export const early = issueCheckpoint(chain.slice(0, 10))

const ranges: [key: IssuerKey, from: number, to: number][] = [
  [FIRST, 1, toSecond.serial],
  [SECOND, toSecond.serial + 1, toThird.serial],
  [THIRD, toThird.serial + 1, chain.length],
]

export const logVectors = {
  seeds: Object.fromEntries(
    [FIRST, CHECKPOINT_KEY, SECOND, NEXT_CHECKPOINT, THIRD].map((key) => [key.key_id, key.seed.toString('hex')]),
  ),
  /** All that has to be trusted. */
  pin: pinOf(FIRST),
  vkey: VKEY,
  keys: { keys },
  in_force: ranges.map(([key, first_serial, last_serial]) => ({ ...pinOf(key), first_serial, last_serial })),
  attestations: chain,
  head: pointOf(chain.at(-1)!),
  checkpoints: { 10: early, 20: checkpoint },
  consistency: { from: 10, to: 20, hashes: hex(treeOf(chain).proof(10, 20)) },
}

export const exportText = issueExport(chain, checkpoint)
