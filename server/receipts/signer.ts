// The keys this process signs with. They are loaded again when the head says that keys have changed, so a rotation reaches
// every process with its next batch, without a restart. A batch signed with a retired key does not commit
// (sql/0001_initial.sql, refuse_key_out_of_turn).
import { z } from 'zod'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import type { SigningKey } from './format.ts'
import { findHead } from './head.ts'
import { deriveKey, findSigningKey, type KEY_USES, openSigningKey } from './keys.ts'

export interface ChainKeys {
  receipt: SigningKey
  /**
   * The active key and the one before it: a monitor that pinned the older one can change until the next rotation.
   * Verifiers of signed notes skip signatures of unknown keys.
   */
  checkpoint: SigningKey[]
  lease: SigningKey
  /** Signs alerts, in the scheme `v1a`. */
  webhook: SigningKey
}

/** Keys for what is signed before its receipt, as of the last batch of this process. */
export type HeldKeys = Readonly<Pick<ChainKeys, 'lease' | 'webhook'>>

export interface Signer {
  /** The active keys. @param keyChanges of the locked head */
  keysAt(tx: Tx, keyChanges: number): Promise<ChainKeys>
  held: HeldKeys
}

/** Registers the first keys of an empty database. Throws when the active keys do not come from this seed. */
export async function openSigner(db: Database, seed: Buffer): Promise<Signer> {
  for (const use of FIRST_TO_LAST) await openSigningKey(db, seed, use)
  const load = async (tx: Tx, keyChanges: number) => ({ keyChanges, keys: await loadKeys(tx, seed) })
  let known = await transact(db, async (tx) => load(tx, (await findHead(tx)).key_changes), { readOnly: true })
  return {
    async keysAt(tx, keyChanges) {
      if (known.keyChanges !== keyChanges) known = await load(tx, keyChanges)
      return known.keys
    },
    held: {
      get lease() {
        return known.keys.lease
      },
      get webhook() {
        return known.keys.webhook
      },
    },
  }
}

/** The order in which an empty database gets its keys, and so the order of their ids. */
const FIRST_TO_LAST = ['receipt', 'checkpoint', 'lease', 'webhook'] as const satisfies (typeof KEY_USES)[number][]

/** The active keys from the database. Throws when they do not come from this seed. */
export async function loadKeys(tx: Tx, seed: Buffer): Promise<ChainKeys> {
  const active = await findSigningKey(tx, seed, 'checkpoint')
  const before = await tx.maybeOne(sql.type(z.object({ key_id: z.number(), generation: z.number() }))`
    select key_id, generation from signing_keys
    where use = 'checkpoint' and status = 'retired' order by generation desc limit 1`)
  const retired = before && { ...deriveKey(seed, 'checkpoint', before.generation), keyId: before.key_id }
  return {
    receipt: await findSigningKey(tx, seed, 'receipt'),
    checkpoint: retired ? [active, retired] : [active],
    lease: await findSigningKey(tx, seed, 'lease'),
    webhook: await findSigningKey(tx, seed, 'webhook'),
  }
}
