// The keys that receipts and checkpoints are signed with, as this process holds them. They are looked up again whenever the
// head says that keys have changed, so a rotation reaches every process with the next batch, without a restart; a batch that
// was signed with a retired key all the same does not commit (sql/0001_initial.sql, refuse_key_out_of_turn).
import { z } from 'zod'
import { type Database, sql, type Tx } from '../db/pool.ts'
import type { SigningKey } from './format.ts'
import { deriveKey, findSigningKey, openSigningKey } from './keys.ts'

export interface ChainKeys {
  receipt: SigningKey
  /**
   * The active one and the one before it: a monitor that pinned the older has until the next rotation to change over.
   * Signed-note verifiers pass over signatures of keys they do not know.
   */
  checkpoint: SigningKey[]
}

export interface Signer {
  /** The keys in force. @param keyChanges as the head has it, under its lock */
  keysAt(tx: Tx, keyChanges: number): Promise<ChainKeys>
}

/** Registers the first keys of an empty database. Throws when the active keys are not of this seed. */
export async function openSigner(db: Database, seed: Buffer): Promise<Signer> {
  await openSigningKey(db, seed, 'receipt')
  await openSigningKey(db, seed, 'checkpoint')
  let held: { keyChanges: number; keys: ChainKeys } | undefined
  return {
    async keysAt(tx, keyChanges) {
      if (held?.keyChanges !== keyChanges) held = { keyChanges, keys: await loadKeys(tx, seed) }
      return held.keys
    },
  }
}

export async function loadKeys(tx: Tx, seed: Buffer): Promise<ChainKeys> {
  const receipt = await findSigningKey(tx, seed, 'receipt')
  const active = await findSigningKey(tx, seed, 'checkpoint')
  const before = await tx.maybeOne(sql.type(z.object({ key_id: z.number(), generation: z.number() }))`
    select key_id, generation from signing_keys
    where use = 'checkpoint' and status = 'retired' order by generation desc limit 1`)
  const retired = before && { ...deriveKey(seed, 'checkpoint', before.generation), keyId: before.key_id }
  return { receipt, checkpoint: retired ? [active, retired] : [active] }
}
