// The head of the chain: one row, locked for the length of one batch. Under the lock, the outcome of every batch before is
// known, and so are the keys that sign the next one.
import { z } from 'zod'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import type { Growth } from './tree.ts'

const headRow = z.object({
  serial: z.number(),
  receipt_hash: z.string(),
  ts_ms: z.number(),
  frontier: z.instanceof(Buffer),
  checkpoint: z.string(),
  key_changes: z.number(),
})
export type Head = z.output<typeof headRow>

/** Receipts that continue a head. */
export interface Extension {
  attestations: Attestation[]
  /** The tree with these receipts in it. */
  tree: Growth
  /** C2SP checkpoint of that tree. */
  checkpoint: string
}

const headColumns = sql.fragment`
  serial, encode(receipt_hash, 'hex') receipt_hash, ts_ms, frontier, checkpoint, key_changes`

/** The head, locked until the transaction ends. */
export function lockHead(tx: Tx): Promise<Head> {
  return tx.one(sql.prepared('lock_chain_head', headRow)`select ${headColumns} from chain_head for update`)
}

/** The head without its lock; before the first receipt serial 0, 64 zeros and no checkpoint. */
export function findHead(tx: Tx | Database): Promise<Head> {
  return tx.one(sql.prepared('find_chain_head', headRow)`select ${headColumns} from chain_head`)
}

/** Writes receipts, the tree nodes they complete and the new head, in one statement. The transaction must hold the lock. */
export async function advanceHead(tx: Tx, { attestations, tree, checkpoint }: Extension) {
  const last = attestations.at(-1)
  if (!last) return
  const made = tree.made()
  await tx.query(sql.prepared('advance_chain_head', nothing)`
    with added as (
      insert into receipts
        (serial, ts_ms, subject_sha256, label, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
      select serial, ts_ms, decode(subject_sha256, 'hex'), label, requested_by, key_id,
             decode(prev_hash, 'hex'), decode(receipt_hash, 'hex'), decode(sig_ed25519_hex, 'hex')
      from json_to_recordset(${JSON.stringify(attestations)}::json) as t (serial int8, ts_ms int8, subject_sha256 text,
        label text, requested_by text, key_id int4, prev_hash text, receipt_hash text, sig_ed25519_hex text)
    ), grown as (
      insert into tree_nodes (level, index, hash)
      select level, index, hash
      from unnest(${column(made, 'int2', (node) => node.level)}, ${column(made, 'int8', (node) => node.index)},
                  ${column(made, 'bytea', (node) => node.hash)}) as t (level, index, hash)
    )
    update chain_head set serial = ${last.serial}, receipt_hash = decode(${last.receipt_hash}, 'hex'),
      ts_ms = ${last.ts_ms}, frontier = ${sql.binary(tree.frontier())}, checkpoint = ${checkpoint}`)
}
