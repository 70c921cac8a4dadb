// Limits on requests in flight, as callers meet them: 429 before a payment is bound, and key and payment stay free.
import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { sourceDomain } from '../../server/outbound/registrable-domain.ts'
import { noFixtures } from '../../server/outbound/url-policy.ts'
import { openOfflineFacilitator } from '../../server/payments/facilitators/offline-facilitator.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import { PAGE, type System, signPayment, startSystem, termsOf } from '../system.ts'

const WAIT = { prefer: 'wait=20' }
const LIMIT = 3

async function startLimited(options: Parameters<typeof startSystem>[0] = {}) {
  return startSystem({ ...options, env: { MAX_IN_FLIGHT_PER_PAYER: String(LIMIT), TRUST_PROXY: '1', ...options.env } })
}

/** A paid call for a page that is held, by a wallet that pays for several. */
async function openCall(system: System, wallet = privateKeyToAccount(generatePrivateKey())) {
  const held = holdPage({ body: PAGE })
  const path = `/${randomUUID()}`
  system.site.pages.set(path, held.page)
  const key = randomUUID()
  const body = { source_url: system.site.url(path), claim: 'The harbour was opened in 1874.' }
  const { headers } = await signPayment(termsOf(await system.ask({ key, body })), { wallet })
  return { key, body, headers, held }
}

async function openCalls(system: System, count: number, wallet?: ReturnType<typeof privateKeyToAccount>) {
  return Promise.all(Array.from({ length: count }, () => openCall(system, wallet)))
}

t.test('beyond its limit a payer gets 429, and the same call succeeds when a request has ended', async (t) => {
  await using system = await startLimited()
  const wallet = privateKeyToAccount(generatePrivateKey())
  const calls = await openCalls(system, LIMIT, wallet)
  for (const call of calls) await expectNonCompleted(t, await system.ask(call), 202)
  const more = await openCall(system, wallet)
  const refused = await system.ask(more)
  t.match(refused.headers.get('retry-after'), /^[1-9][0-9]?$/)
  const { error, request_id } = await expectNonCompleted(t, refused, 429)
  t.match(error, { code: 'rate_limited', retryable: true, message: /payer is 3 .*Nothing was charged\./ })
  t.equal(request_id, undefined)
  await expectNonCompleted(t, await system.ask({ key: more.key, body: more.body }), 402, 'it is still a quote')
  await expectNonCompleted(t, await system.ask(calls[0]!), 202, 'a request in flight is answered as before')
  const other = await openCall(system)
  await expectNonCompleted(t, await system.ask(other), 202, 'another payer is served')

  calls[0]!.held.release()
  await expectCompleted(t, await system.ask({ ...calls[0]!, headers: { ...calls[0]!.headers, ...WAIT } }))
  more.held.release()
  await expectCompleted(t, await system.ask({ ...more, headers: { ...more.headers, ...WAIT } }))
  for (const call of [...calls, other]) call.held.release()
})

t.test('a limit grows by one with each settlement and shrinks by one with each failure, down to two', async (t) => {
  await using system = await startLimited()
  const wallet = privateKeyToAccount(generatePrivateKey())
  const payer = wallet.address.toLowerCase()
  const payerRow = async () =>
    (await system.sql('select settled::int, max_in_flight from payers where payer = $1', [payer]))[0]
  t.equal(await payerRow(), undefined, 'a payer who never paid has no row')
  const end = async (status: number) => {
    const call = await openCall(system, wallet)
    system.site.pages.set(new URL(call.body.source_url).pathname, { status, body: PAGE })
    t.equal((await system.ask({ ...call, headers: { ...call.headers, ...WAIT } })).status, status === 200 ? 200 : 422)
    return payerRow()
  }
  t.same(await end(200), { settled: 1, max_in_flight: LIMIT + 1 })
  t.same(await end(200), { settled: 2, max_in_flight: LIMIT + 2 })
  t.same(await end(503), { settled: 2, max_in_flight: LIMIT + 1 })
  for (let n = 0; n < 4; n++) await end(404)
  t.same(await payerRow(), { settled: 2, max_in_flight: 2 })
  t.same(await end(200), { settled: 3, max_in_flight: 3 })
  await system.sql('update payers set max_in_flight = 256')
  t.same(await end(200), { settled: 4, max_in_flight: 256 })
})

t.test('an address is counted by its network, and no address is stored', async (t) => {
  await using system = await startLimited()
  const ask = async (address: string) => {
    const key = randomUUID()
    await expectNonCompleted(t, await system.ask({ key, headers: { 'x-forwarded-for': address } }), 402)
    const hash = createHash('sha256').update(key).digest()
    const [row] = await system.sql(
      `select encode(address_key, 'hex') k from verification_requests where key_hash = $1`,
      [hash],
    )
    return String(row?.k)
  }
  t.equal(await ask('2001:db8:1:2::1'), await ask('2001:db8:1:2:ffff::9'), 'one /64')
  t.not(await ask('2001:db8:1:2::1'), await ask('2001:db8:1:3::1'), 'another /64')
  t.equal(await ask('192.0.2.1'), await ask('::ffff:192.0.2.1'), 'IPv4 in both notations')
  t.not(await ask('192.0.2.1'), await ask('192.0.2.2'))
  const stored = JSON.stringify(await system.sql('select r::text from verification_requests r'))
  for (const text of ['192.0.2.1', '2001:db8', Buffer.from('192.0.2.1').toString('hex')])
    t.notOk(stored.includes(text), text)
})

t.test('registrable domains', (t) => {
  const domains: Record<string, string> = {
    'https://www.example.com/': 'example.com',
    'https://a.b.c.example.co.uk/': 'example.co.uk',
    'https://someone.github.io/': 'someone.github.io',
    'https://deep.someone.github.io/': 'someone.github.io',
    'https://github.io/': 'github.io',
    'https://slow.unlisted-tld/': 'slow.unlisted-tld',
    'https://93.184.216.34/': '93.184.216.34',
    'https://[2606:4700::1111]/': '2606:4700::1111',
  }
  for (const [url, domain] of Object.entries(domains)) t.equal(sourceDomain(new URL(url), noFixtures), domain, url)
  const fixtures = { hosts: new Map([['deep.site.test', { address: '127.0.0.1', port: 1 }]]), ca: undefined }
  t.equal(sourceDomain(new URL('https://deep.site.test/'), fixtures), 'deep.site.test', 'a fixture host is itself')
  t.end()
})

t.test('the balance is read only for a proved payer with unsettled requests', async (t) => {
  const asked: string[] = []
  let cover: number | null = 2
  const facilitator = openOfflineFacilitator()
  const overrides = {
    facilitator: {
      ...facilitator,
      cover: async (offer: Parameters<typeof facilitator.cover>[0]) => {
        asked.push(offer.bound.identity.payer)
        return cover
      },
    },
  }
  await using system = await startLimited({ overrides })
  const wallet = privateKeyToAccount(generatePrivateKey())
  const [first, second, third] = await openCalls(system, 3, wallet)
  await expectNonCompleted(t, await system.ask(first!), 202)
  t.same(asked, [], 'no request was unsettled')
  const forged = await signPayment(termsOf(await system.ask({ key: second!.key, body: second!.body })), {
    authorization: { from: wallet.address },
  })
  await expectNonCompleted(t, await system.ask({ ...second!, headers: forged.headers }), 402)
  t.same(asked, [], 'the payer was not proved')
  await expectNonCompleted(t, await system.ask(second!), 202)
  const { error } = await expectNonCompleted(t, await system.ask(third!), 429)
  t.match(error.message, /as its balance and history cover: 2\. Nothing was charged\./)
  t.same(
    asked,
    [wallet.address, wallet.address].map((address) => address.toLowerCase()),
  )
  cover = null
  await expectNonCompleted(t, await system.ask(third!), 202)
  for (const { held } of [first!, second!, third!]) held.release()
})
