// The cache of results that are served again: its limit is the memory that it uses, for results of every kind.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openResultCache } from '../../server/context.ts'

t.test('headers count as much as bodies', async (t) => {
  const cache = openResultCache()
  const result = {
    bytes: Buffer.alloc(1000),
    settlementHeader: 'x'.repeat(15_000),
    recoveryToken: 'y'.repeat(100),
    expiresAt: 0,
  }
  for (let n = 0; n < 10_000; n++) cache.set(randomUUID(), result)
  const kept = cache.size * (1000 + 15_000 + 100)
  t.ok(kept <= 64 * 2 ** 20 && kept > 50 * 2 ** 20, `${cache.size} results of ${kept} bytes`)
})
