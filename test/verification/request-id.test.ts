// Ids of requests are valid UUIDs, and ids of about the same time are close together in an index.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { makeRequestId } from '../../server/verification/request-id.ts'
import { startSystem } from '../system.ts'

t.test('ids are UUIDs of version 7, in the order of their times, and do not repeat', async (t) => {
  const times = [0, 1, 0xffff, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1]
  const ids = times.map((at) => makeRequestId(at))
  t.same(ids.toSorted(), ids)
  t.match(ids[3], /^018bcfe5-6800-7/)
  for (const id of ids) t.ok(z.uuidv7().safeParse(id).success, id)
  const at = Date.now()
  t.equal(new Set(Array.from({ length: 10_000 }, () => makeRequestId(at))).size, 10_000)
})

t.test('a request gets such an id', async (t) => {
  await using system = await startSystem()
  const before = makeRequestId(Date.now() - 1)
  const answer = await system.ask({ key: randomUUID() })
  t.equal(answer.status, 402)
  const [row] = await system.sql('select id from verification_requests')
  t.ok(z.uuidv7().safeParse(row?.id).success)
  t.ok(String(row?.id) > before && String(row?.id) < makeRequestId(Date.now() + 60_000))
})
