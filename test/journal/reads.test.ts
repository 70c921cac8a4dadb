// Concurrent reads of slots share queries: each caller must get the bytes of its own slot.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { nothing, sql } from '../../server/db/pool.ts'
import { openAccountHarness } from '../accounts/harness.ts'

t.test('a hundred concurrent reads of three accounts, some of missing slots', async (t) => {
  await using harness = await openAccountHarness()
  const accounts = await Promise.all([1, 2, 3].map(() => harness.register({ tier: 'pro' })))
  const kept = new Map<string, Buffer>()
  for (const [index, account] of accounts.entries())
    for (const slot of ['a', 'b', 'c']) {
      const bytes = randomBytes(index === 0 ? 65_536 : 10 * index)
      kept.set(`${index} ${slot}`, bytes)
      await account.call('PUT', `/v1/journal/${slot}`, { body: bytes })
    }
  await accounts[2]!.call('DELETE', '/v1/journal/c')
  kept.delete('2 c')
  const reads = Array.from({ length: 100 }, (_, n) => [n % 3, 'abcd'[n % 4]!] as const)
  const answers = await Promise.all(reads.map(([index, slot]) => accounts[index]!.call('GET', `/v1/journal/${slot}`)))
  const wrong = reads.filter(([index, slot], n) => {
    const expected = kept.get(`${index} ${slot}`)
    const { status, bytes } = answers[n]!
    return expected ? status !== 200 || !bytes.equals(expected) : status !== 404
  })
  t.same(wrong, [])
})

t.test('a read sees every write that was answered before it began', async (t) => {
  await using harness = await openAccountHarness()
  const account = await harness.register()
  for (let n = 0; n < 20; n++) {
    const under = account.call('GET', '/v1/journal/a')
    await account.call('PUT', '/v1/journal/a', { body: Buffer.from(`${n}`) })
    t.equal((await account.call('GET', '/v1/journal/a')).bytes.toString(), `${n}`)
    await under
  }
})

t.test('bytes come from the database where their digest is new, and are kept where it is not', async (t) => {
  await using harness = await openAccountHarness()
  const account = await harness.register()
  const put = (text: string) => account.call('PUT', '/v1/journal/a', { body: Buffer.from(text) })
  const read = async () => (await account.call('GET', '/v1/journal/a')).bytes.toString()
  await put('first')
  t.equal(await read(), 'first')
  await harness.api.db.query(sql.type(nothing)`update journal_slots set content = 'other bytes of this digest'`)
  t.equal(await read(), 'first', 'these bytes were not read again')
  await put('second')
  t.equal(await read(), 'second')
  await account.call('DELETE', '/v1/journal/a')
  t.equal((await account.call('GET', '/v1/journal/a')).status, 404)
  await put('first')
  await harness.api.db.query(sql.type(nothing)`update journal_slots set content = 'bytes after the delete'`)
  t.equal(await read(), 'bytes after the delete', 'a slot that is gone is not kept')
})
