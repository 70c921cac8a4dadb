// The chain as it is usually written: a transaction for each receipt.
import pg from 'pg'
import type { Attestation } from '../../server/interface/attestation.ts'
import type { Subject } from '../../server/receipts/chain.ts'
import { attest, GENESIS, type SigningKey } from '../../server/receipts/format.ts'

/** As many as the service has. */
export const CONNECTIONS = 10

/**
 * The chain as it is usually written: lock the head, sign, insert, move the head, commit; prepared statements, as many
 * connections as the service has. All that it leaves out speaks for it: HTTP, the caller's key, the daily count, the tree.
 */
export async function openOneByOne(databaseUrl: string) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: CONNECTIONS })
  pool.on('error', () => {})
  await pool.query(`create table one_by_one (serial bigint primary key, ts_ms bigint not null, subject bytea not null,
    label text, requested_by text not null, key_id integer not null, prev_hash bytea not null unique,
    receipt_hash bytea not null unique, sig bytea not null)`)
  await pool.query('create table one_head (serial bigint not null, receipt_hash bytea not null)')
  await pool.query(`insert into one_head values (0, decode('${GENESIS}', 'hex'))`)
  return {
    async append(key: SigningKey, entry: Subject): Promise<Attestation> {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const made = await appendOne(client, key, entry)
        await client.query('commit')
        return made
      } finally {
        client.release()
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

async function appendOne(client: pg.PoolClient, key: SigningKey, entry: Subject): Promise<Attestation> {
  const { rows } = await client.query<{ serial: string; hash: string }>({
    name: 'head',
    text: `select serial, encode(receipt_hash, 'hex') hash from one_head for update`,
  })
  const a = attest({ ...entry, serial: Number(rows[0]!.serial) + 1, prevHash: rows[0]!.hash, tsMs: Date.now() }, key)
  const hashes = [a.subject_sha256, a.prev_hash, a.receipt_hash, a.sig_ed25519_hex]
  await client.query({
    name: 'insert',
    text: `insert into one_by_one values
      ($1, $2, decode($6, 'hex'), $3, $4, $5, decode($7, 'hex'), decode($8, 'hex'), decode($9, 'hex'))`,
    values: [a.serial, a.ts_ms, a.label, a.requested_by, a.key_id, ...hashes],
  })
  await client.query({
    name: 'move',
    text: `update one_head set serial = $1, receipt_hash = decode($2, 'hex')`,
    values: [a.serial, a.receipt_hash],
  })
  return a
}
