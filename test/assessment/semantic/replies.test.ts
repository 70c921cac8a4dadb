// Replies of a model's server: whole, bounded, and without more memory than their octets.
import t from 'tap'
import { boundedFetch } from '../../../workers/assessment/semantic/failures.ts'
import { keptOfOctets } from '../../octets.ts'

t.test('of a reply that arrives octet by octet, no piece is kept', async (t) => {
  const kept = await keptOfOctets(20_000, async () => {
    const reply = await boundedFetch('http://model.test')
    t.equal(await reply.text(), ' '.repeat(20_000))
  })
  t.ok(kept < 1000, `${kept} pieces are kept`)
})

t.test('a reply of more than 4 MiB is not read', async (t) => {
  await keptOfOctets(0, async () => {
    const most = 4 * 1024 * 1024
    globalThis.fetch = async () => new Response(new Uint8Array(most), { status: 503, headers: { 'retry-after': '7' } })
    const reply = await boundedFetch('http://model.test')
    t.match([reply.status, reply.headers.get('retry-after')], [503, '7'])
    t.equal((await reply.arrayBuffer()).byteLength, most)
    globalThis.fetch = async () => new Response(new Uint8Array(most + 1))
    await t.rejects(boundedFetch('http://model.test'), RangeError)
    globalThis.fetch = async () => new Response(null, { status: 204 })
    t.equal((await boundedFetch('http://model.test')).status, 204)
  })
})
