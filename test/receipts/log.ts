// A receipt log for tests: its own database, any number of processes that append, and means to read and damage it.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { type Database, openDatabase } from '../../server/db/pool.ts'
import type { Attestation } from '../../server/interface/attestation.ts'
import { findAttestations } from '../../server/receipts/archive.ts'
import { type Appended, type Chain, openChain } from '../../server/receipts/chain.ts'
import { sha256 } from '../../server/receipts/format.ts'
import { findHead } from '../../server/receipts/head.ts'
import type { KeyUse } from '../../server/receipts/keys.ts'
import { type Rotation, rotateKey } from '../../server/receipts/rotation.ts'
import { openSigner, type Signer } from '../../server/receipts/signer.ts'
import { openTestDatabase } from '../database.ts'

export interface TestLog extends AsyncDisposable {
  url: string
  seed: Buffer
  /** One for each process: its pool, chain and signer. */
  processes: { db: Database; chain: Chain; signer: Signer }[]
  db: Database
  /** Appends receipts through all processes at once; answers the attestations by serial. */
  append(count: number): Promise<Attestation[]>
  rotate(use?: KeyUse): Promise<Rotation>
  /** Every attestation, as exported. */
  read(): Promise<Attestation[]>
  /** The parts of the head that a monitor pins. */
  head(): Promise<{ serial: number; receipt_hash: string; checkpoint: string }>
  /** Runs statements with the database's triggers off. */
  damage(...statements: string[]): Promise<void>
}

export const ORIGIN = 'log.test'

export async function openTestLog({ processes: count = 1, origin = ORIGIN } = {}): Promise<TestLog> {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const seed = randomBytes(32)
  const processes: TestLog['processes'] = []
  for (let n = 0; n < count; n++) {
    const db = await openDatabase(url, { maxConnections: 2 })
    opened.defer(() => db.end())
    const signer = await openSigner(db, seed)
    processes.push({ db, signer, chain: opened.use(openChain(db, signer, { origin })) })
  }
  const { db } = processes[0]!
  const closing = opened.move()
  let made = 0
  return {
    url,
    seed,
    processes,
    db,
    async append(count) {
      const appended = await Promise.all(
        Array.from({ length: count }, () => processes[made % processes.length]!.chain.append(entry(made++))),
      )
      return appended.map((one) => (one as Appended).attestation).sort((a, b) => a.serial - b.serial)
    },
    rotate: (use = 'receipt') => rotateKey(db, seed, use, { origin, now: Date.now }),
    async read() {
      const { serial } = await findHead(db)
      const serials = Array.from({ length: Math.max(1, serial) }, (_, n) => n + 1)
      return (await findAttestations(db, serials)).filter((one) => one !== null)
    },
    head: () => findHead(db),
    async damage(...statements) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        await client.query('set session_replication_role = replica')
        for (const statement of statements) await client.query(statement)
      } finally {
        await client.end()
      }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** A unique subject. Its label holds characters that JSON escapes. */
export function entry(n: number) {
  const label = n % 2 ? `n ${n} "caf\u00e9" \\ \u{1F600} \u2028` : null
  return { subjectSha256: sha256(`subject ${n}`), label, requestedBy: 'tester' }
}
