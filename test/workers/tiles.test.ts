// The job that stores the hashes of the middle level of the chain's tiles: every worker runs it, once a minute.
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { crontab } from '../../workers/tasks.ts'
import { startSystem } from '../system.ts'

t.test('a worker stores what a full tile lacks', async (t) => {
  const items = crontab() as unknown as { task: string }[]
  t.equal(items.filter(({ task }) => task === 'fill_tiles').length, 1)
  await using system = await startSystem()
  await system.sql(`with guards as materialized (select set_config('session_replication_role', 'replica', true) setting),
    planted as (
      insert into receipts (serial, ts_ms, subject_sha256, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
      select n, 1, sha256(''), 'tester', 1, sha256(('before ' || n)::bytea), sha256(('leaf ' || n)::bytea),
             decode(repeat('00', 64), 'hex') from guards, generate_series(1, 256) n where setting <> ''
    )
    update chain_head set serial = 256, frontier = decode(repeat('00', 32), 'hex'), checkpoint = 'x'`)
  await system.sql(`select graphile_worker.add_job('fill_tiles')`)
  const stored = () => system.sql('select level, index::int, octet_length(hashes) bytes from tile_middles')
  let rows = await stored()
  for (; rows.length === 0; rows = await stored()) await pause(25)
  t.same(rows, [{ level: 0, index: 0, bytes: 512 }])
})
