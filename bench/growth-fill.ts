// Fills a database of the growth bench: a real chain of receipts, finished requests and accounts, all made inside Postgres. The first
// request is completed by a worker, and the others are copies of its rows.
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { openClient } from './lab.ts'

export interface Sizes {
  receipts: number
  /** Finished requests. The results of one in ten are still stored, as after a day at the tenth of this number. */
  requests: number
  accounts: number
}

/** One finished request in so many still has its result. */
export const STORED_ONE_IN = 10

/**
 * The database holds the given numbers afterwards. Every hash, link and tree node is right, so that the audit finds a sound chain;
 * the signatures of these receipts are random bytes. Needs a superuser and one completed request.
 */
export async function fill(url: string, { receipts, requests, accounts }: Sizes): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const client = await openClient(url, opened)
  // Checks that the rows pass by the way they are made: foreign keys and the guards of the chain.
  await client.query(`set session_replication_role = replica; set synchronous_commit = off; set maintenance_work_mem = '1GB';
    set max_parallel_maintenance_workers = 0; set timezone = 'UTC'`)
  await client.query(FILL_ACCOUNTS, [accounts, randomBytes(16)])
  for (const table of ['verification_requests', 'payment_claims', 'payment_ledger', 'payers', 'receipts'])
    await client.query(`alter table ${table} set (autovacuum_enabled = off)`)
  await withoutIndexes(client, ['verification_requests', 'payment_claims', 'payment_ledger', 'payers'], () =>
    fillRequests(client, requests),
  )
  await withoutIndexes(client, ['receipts'], () => fillChain(client, receipts, accounts))
  for (const table of ['verification_requests', 'payment_claims', 'payment_ledger', 'payers', 'receipts'])
    await client.query(`alter table ${table} reset (autovacuum_enabled)`)
  await client.query('vacuum (analyze)')
  await client.query('checkpoint')
}

/** Indexes and unique constraints other than primary keys are dropped and made again: one sort in place of a search for each row. */
async function withoutIndexes(client: pg.Client, tables: string[], work: () => Promise<void>) {
  const { rows } = await client.query<{ drop: string; make: string }>(
    `select format('alter table %s drop constraint %I', c.conrelid::regclass, c.conname) drop,
            format('alter table %s add constraint %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) make
     from pg_constraint c where c.contype = 'u' and c.conrelid = any($1::regclass[])
     union all
     select format('drop index %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('u', 'p')
     where i.indrelid = any($1::regclass[]) and c.oid is null`,
    [tables],
  )
  for (const { drop } of rows) await client.query(drop)
  await work()
  for (const { make } of rows) await client.query(make)
}

const FILL_ACCOUNTS = `with made as (
    insert into accounts (id, handle, created_at)
    select gen_random_uuid(), 'fill-' || n, now() - interval '200 days' from generate_series(0, $1::int - 1) n returning id
  ), keyed as (
    insert into api_keys (id, account_id, key_hash, kind, created_at, last_used_at)
    select gen_random_uuid(), id, sha256($2::bytea || uuid_send(id)), 'full', now() - interval '200 days', now() - interval '1 day' from made
  )
  insert into receipt_days (account_id, day, receipts) select id, (now() at time zone 'utc')::date, 1 from made`

/** Copies of the one request, of a tenth as many payers. */
async function fillRequests(client: pg.Client, requests: number) {
  await client.query('create temp table one as select * from verification_requests limit 1')
  const payer = `'0x' || lpad(to_hex(n % greatest(1, $1::int / 10)), 40, '0')`
  const copied = `select n, uuidv7(at - now()) id, key_hash, payer, nonce, stored, at from (
    select n, sha256(int8send(n) || '\\xf111'::bytea) key_hash, ${payer} payer,
      '0x' || encode(sha256(int8send(n)), 'hex') nonce, n % ${STORED_ONE_IN} = 0 stored,
      now() - case when n % ${STORED_ONE_IN} = 0 then interval '2 hours' else interval '10 days' end
        - n * interval '1 millisecond' as at
    from generate_series(1, $1::int) n) one`
  await client.query(
    'create temp table made (n int, id uuid, key_hash bytea, payer text, nonce text, stored bool, at timestamptz)',
  )
  await client.query(`insert into made ${copied}`, [requests])
  await copyRows(client, 'verification_requests', 'one', {
    id: 'm.id',
    key_hash: 'm.key_hash',
    state: "case when m.stored then o.state else 'expired' end",
    ...Object.fromEntries(
      ['body', 'result', 'settlement_header', 'settlement', 'history'].map((c) => [
        c,
        `case when m.stored then o.${c} end`,
      ]),
    ),
    address_key: 'null',
    domain: `encode(m.key_hash, 'hex') || '.test'`,
    payer: 'm.payer',
    quote_expires_at: 'm.at',
    created_at: 'm.at',
    accepted_at: 'm.at',
    changed_at: 'm.at',
  })
  const own = { request_id: 'm.id', payer: 'm.payer', nonce: 'm.nonce' }
  await copyRows(client, 'payment_claims', 'payment_claims', { ...own, claimed_at: 'm.at' })
  await copyRows(client, 'payment_ledger', 'payment_ledger', { ...own, entered_at: 'm.at' }, ['entry'])
  await client.query(`insert into payers (payer, settled, max_in_flight)
    select payer, count(*), 32 from made group by payer on conflict (payer) do nothing`)
}

async function copyRows(
  client: pg.Client,
  table: string,
  from: string,
  changed: Record<string, string>,
  left: string[] = [],
) {
  const columns = (await columnsOf(client, table)).filter((column) => !left.includes(column))
  await client.query(`insert into ${table} (${columns.join(', ')})
    select ${columns.map((column) => changed[column] ?? `o.${column}`).join(', ')}
    from made m, (select * from ${from} limit 1) o`)
}

async function columnsOf(client: pg.Client, table: string) {
  const { rows } = await client.query<{ name: string }>(
    'select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum',
    [table],
  )
  return rows.map(({ name }) => name)
}

/** Receipts of one a second, the last of them a minute ago. The service signs the head again with the next receipt. */
async function fillChain(client: pg.Client, receipts: number, accounts: number) {
  await client.query(FILL_CHAIN)
  await client.query('call fill_chain($1, $2)', [receipts, Math.max(1, accounts)])
  await client.query('drop procedure fill_chain')
}

const FILL_CHAIN = `create procedure fill_chain(wanted bigint, accounts int) language plpgsql as $$
declare
  head chain_head%rowtype;
  key signing_keys%rowtype;
  nodes bytea[] := array_fill(null::bytea, array[48]);
  edge bytea;
  place int;
  prev bytea;
  fields text;
  node bytea;
  level int;
  ts bigint;
  start bigint;
  subject bytea;
  day bigint := -1;
  day_text text;
begin
  select * into head from chain_head;
  select * into key from signing_keys where use = 'receipt' and status = 'active';
  edge := head.frontier;
  place := 1;
  for level in reverse 47..0 loop
    if (head.serial >> level) & 1 = 1 then
      nodes[level + 1] := substr(edge, place, 32);
      place := place + 32;
    end if;
  end loop;
  prev := head.receipt_hash;
  start := greatest(head.ts_ms, (extract(epoch from now()) * 1000)::bigint - 60000) ;
  for serial in head.serial + 1 .. wanted loop
    ts := start + serial / 1000;
    subject := sha256(int8send(serial));
    if ts <> day then
      day := ts;
      day_text := to_char(timestamp 'epoch' + ts * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
    end if;
    fields := '{"key_id":' || key.key_id || ',"label":null,"prev_hash":"' || encode(prev, 'hex') || '","pubkey_hex":"'
      || encode(key.pubkey, 'hex') || '","requested_by":"fill-' || serial % accounts || '","serial":' || serial
      || ',"subject_sha256":"' || encode(subject, 'hex') || '","ts_ms":' || ts || ',"ts_utc":"' || day_text || '","v":1}';
    node := sha256(convert_to(fields, 'UTF8'));
    insert into receipts (serial, ts_ms, subject_sha256, label, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
    values (serial, ts, subject, null, 'fill-' || serial % accounts, key.key_id, prev, node, node || subject);
    prev := node;
    node := sha256('\\x00'::bytea || node);
    level := 0;
    while ((serial - 1) >> level) & 1 = 1 loop
      node := sha256('\\x01'::bytea || nodes[level + 1] || node);
      level := level + 1;
      if level % 8 = 0 then
        insert into tree_nodes (level, index, hash) values (level, (serial - 1) >> level, node);
      end if;
    end loop;
    nodes[level + 1] := node;
  end loop;
  edge := ''::bytea;
  for level in reverse 47..0 loop
    if (wanted >> level) & 1 = 1 then edge := edge || nodes[level + 1]; end if;
  end loop;
  update chain_head set serial = wanted, receipt_hash = prev, ts_ms = ts, frontier = edge;
end $$`
