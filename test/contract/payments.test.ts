// Payments that do not meet the terms: 402 with the terms, nothing charged, and the key can still be paid.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { openScriptedFacilitator, type PaymentChanges, signPayment, startSystem, termsOf } from '../system.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

const other = privateKeyToAccount(`0x${'17'.repeat(32)}`)
const inSeconds = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds)
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** The other signature of the same key for the same message, which token contracts refuse. */
function malleate(signature: string): string {
  const s = CURVE_ORDER - BigInt(`0x${signature.slice(66, 130)}`)
  const v = signature.endsWith('1b') ? '1c' : '1b'
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v}`
}

const sign = (change: (signature: string) => string): PaymentChanges => ({
  alter: (payload) => ({
    ...payload,
    payload: { ...payload.payload, signature: change(payload.payload.signature) },
  }),
})

const changed: Record<string, PaymentChanges> = {
  'x402 version 1': { alter: (payload) => ({ ...payload, x402Version: 1 }) },
  'x402 version 3': { alter: (payload) => ({ ...payload, x402Version: 3 }) },
  'no version': { alter: (payload) => ({ ...payload, x402Version: undefined }) },
  'nothing accepted': { alter: (payload) => ({ ...payload, accepted: undefined }) },
  'no payload': { alter: (payload) => ({ ...payload, payload: undefined }) },
  'another scheme': { accepted: { scheme: 'upto' } },
  'another network': { accepted: { network: 'eip155:8453' } },
  'a network unheard of': { accepted: { network: 'eip155:1' } },
  'another asset': { accepted: { asset: other.address } },
  'a lower amount accepted': { accepted: { amount: '29999' } },
  'a higher amount accepted': { accepted: { amount: '30001' } },
  'another recipient accepted': { accepted: { payTo: other.address } },
  'a lower value': { authorization: { value: '29999' } },
  'a higher value': { authorization: { value: '30001' } },
  'no value': { authorization: { value: '0' } },
  'another recipient': { authorization: { to: other.address } },
  expired: { authorization: { validBefore: inSeconds(-1) } },
  'expired long ago': { authorization: { validBefore: '1' } },
  'not yet valid': { authorization: { validAfter: inSeconds(100), validBefore: inSeconds(200) } },
  'valid never': { authorization: { validAfter: inSeconds(-10), validBefore: inSeconds(-20) } },
  'another payer': { authorization: { from: other.address } },
  'no signature': sign(() => '0x'),
  'a signature of zeros': sign(() => `0x${'00'.repeat(65)}`),
  'half a signature': sign((signature) => signature.slice(0, 66)),
  'a signature with one bit changed': sign((signature) =>
    signature.replace(/.(?=.{70}$)/, (digit) => (Number.parseInt(digit, 16) ^ 1).toString(16)),
  ),
  'a signature that is no hex': sign(() => 'signed'),
  'a smart-wallet signature no chain can check': sign((signature) => `${signature}${'00'.repeat(64)}`),
  'value raised after signing': {
    authorization: { value: '1' },
    alter: ({ payload, ...rest }) => ({
      ...rest,
      payload: { ...payload, authorization: { ...payload.authorization, value: '30000' } },
    }),
  },
  'nonce changed after signing': {
    alter: ({ payload, ...rest }) => ({
      ...rest,
      payload: { ...payload, authorization: { ...payload.authorization, nonce: `0x${'ab'.repeat(32)}` } },
    }),
  },
  'a short nonce': {
    alter: ({ payload, ...rest }) => ({
      ...rest,
      payload: { ...payload, authorization: { ...payload.authorization, nonce: '0x01' } },
    }),
  },
  'a value as a number': {
    alter: ({ payload, ...rest }) => ({
      ...rest,
      payload: { ...payload, authorization: { ...payload.authorization, value: 30_000 } },
    }),
  },
  Permit2: {
    alter: ({ payload, accepted, ...rest }) => ({
      ...rest,
      accepted: { ...accepted, extra: { name: 'USDC', version: '2', assetTransferMethod: 'permit2' } },
      payload: {
        signature: payload.signature,
        permit2Authorization: {
          permitted: { token: accepted.asset, amount: '30000' },
          from: payload.authorization.from,
          spender: '0x402085c248EeA27D92E8b30b2C58ed07f9E20001',
          nonce: '1',
          deadline: inSeconds(300),
          witness: { to: accepted.payTo, validAfter: '0' },
        },
      },
    }),
  },
}

const undecodable: Record<string, string> = {
  empty: '',
  'not base64': '%%%',
  text: 'pay me later',
  'base64 of text': Buffer.from('pay me later').toString('base64'),
  'base64 of invalid UTF-8': Buffer.from([0xff, 0xfe, 0x00, 0x80]).toString('base64'),
  'base64 of null': base64(null),
  'base64 of a number': base64(30_000),
  'base64 of a string': base64('paid'),
  'base64 of an array': base64([]),
  'base64 of an empty object': base64({}),
  'base64 of terms': base64({ x402Version: 2, accepts: [] }),
  'base64 with __proto__': Buffer.from('{"__proto__":{"x402Version":2}}').toString('base64'),
  'base64 of deep arrays': Buffer.from(`${'['.repeat(4000)}${']'.repeat(4000)}`).toString('base64'),
  'bare JSON': '{"x402Version":2}',
  'ten thousand letters': 'A'.repeat(10_000),
}

t.test('402 with the terms, saying why and telling no secret; then a good payment of the same key', async (t) => {
  const key = randomUUID()
  const terms = termsOf(await system.ask({ key }))
  const refuse = async (about: string, header: string, secrets: string[] = []) => {
    const response = await system.ask({ key, headers: { 'payment-signature': header, prefer: 'wait=20' } })
    t.same(response.headers.has('payment-required') && termsOf(response).accepts, terms.accepts, `${about}: terms`)
    t.equal(response.headers.has('x-service-recovery-token'), false, `${about}: nothing to recover`)
    const text = await response.clone().text()
    t.notOk(
      secrets.some((secret) => text.toLowerCase().includes(secret.toLowerCase())),
      `${about}: no secret`,
    )
    const body = await expectNonCompleted(t, response, 402, about)
    t.same(body.payment_required?.accepts, terms.accepts, `${about}: terms in the body`)
    if (header) t.not(body.error.code, 'payment_required', `${about}: says that the payment is the matter`)
  }
  for (const [about, header] of Object.entries(undecodable)) await refuse(about, header)
  for (const [about, changes] of Object.entries(changed)) {
    const { header, signature, nonce } = await signPayment(terms, changes)
    await refuse(about, header, [header, signature, nonce])
  }
  const wrongDomain = structuredClone(terms)
  if (wrongDomain.accepts[0]) wrongDomain.accepts[0].extra.version = '1'
  const { header } = await signPayment(wrongDomain, { accepted: { ...terms.accepts[0] } })
  await refuse('signed for another EIP-712 domain', header)

  const odd = await signPayment(terms, { alter: (payload) => ({ ...payload, extensions: { note: '???>>>~~~' } }) })
  const url = Buffer.from(odd.header, 'base64').toString('base64url')
  t.not(url, odd.header)
  await refuse('base64url', url)

  t.equal(till.settled.length, 0)
  t.same(await system.sql('select count(*)::int n from payment_claims'), [{ n: 0 }], 'no authorization is bound')
  t.same(system.site.requests, [], 'nothing was fetched')
  await expectCompleted(t, await system.ask({ key, headers: { ...odd.headers, prefer: 'wait=20' } }))
  t.equal(till.settled.length, 1)
})

t.test('signatures no token contract would take: 402', async (t) => {
  const forms: Record<string, (signature: string) => string> = {
    'the same signature, malleated': malleate,
    'a recovery id of 0 or 1': (signature) => signature.replace(/..$/, (v) => (v === '1b' ? '00' : '01')),
  }
  for (const [about, change] of Object.entries(forms)) {
    const key = randomUUID()
    const terms = termsOf(await system.ask({ key }))
    const { headers } = await signPayment(terms, sign(change))
    await expectNonCompleted(t, await system.ask({ key, headers }), 402, about)
  }
})

t.test('terms may be repeated in another case, and extra may say more', async (t) => {
  const key = randomUUID()
  const terms = termsOf(await system.ask({ key }))
  const [first] = terms.accepts
  const payment = await signPayment(terms, {
    accepted: { asset: first?.asset.toLowerCase(), extra: { ...first?.extra, more: 1 } },
    authorization: { to: first?.payTo.toLowerCase() ?? '' },
  })
  await expectCompleted(t, await system.ask({ key, headers: { ...payment.headers, prefer: 'wait=20' } }))
})

t.test('a payment nested deeper than anything is written down is refused, and no other purchase with it', async (t) => {
  const prepare = async () => {
    const key = randomUUID()
    const payment = await signPayment(termsOf(await system.ask({ key })))
    return { key, payment }
  }
  const nested = `${'['.repeat(9000)}${']'.repeat(9000)}`
  const [hostile, ...others] = await Promise.all(Array.from({ length: 9 }, prepare))
  const text = Buffer.from(hostile?.payment.header ?? '', 'base64').toString()
  const header = Buffer.from(text.replace(/\}$/, `,"extensions":{"more":${nested}}}`)).toString('base64')
  const [refused, ...answers] = await Promise.all([
    system.ask({ key: hostile?.key ?? '', headers: { 'payment-signature': header } }),
    ...others.map(({ key, payment }) => system.ask({ key, headers: { ...payment.headers, prefer: 'wait=20' } })),
  ])
  await expectNonCompleted(t, refused, 402, 'payment_invalid')
  for (const answer of answers) await expectCompleted(t, answer)
})

t.test('whatever characters a claim is made of, it is bought and comes back as it was', async (t) => {
  const claims = [
    'opened\u0000in 1874',
    'a\uffff\u0001\u001b',
    '🚢'.repeat(2000),
    'افتتح الميناء ١٨٧٤',
    '\u2028"\\/<script>',
  ]
  for (const claim of claims) {
    const key = randomUUID()
    const body = { source_url: system.site.url('/harbour'), claim }
    const payment = await signPayment(termsOf(await system.ask({ key, body })))
    const response = await system.ask({ key, body, headers: { ...payment.headers, prefer: 'wait=20' } })
    t.equal((await expectCompleted(t, response)).result.claim, claim)
  }
})

/** x402's extension payment-identifier, as a client adds it. */
const named = (id: string): Pick<PaymentChanges, 'alter'> => ({
  alter: (payload) => ({ ...payload, extensions: { 'payment-identifier': { info: { required: false, id } } } }),
})

t.test('a forged payer learns nothing of the payments of the true one', async (t) => {
  const wallet = privateKeyToAccount(`0x${'23'.repeat(32)}`)
  const identifier = randomUUID()
  const key = randomUUID()
  const paid = await signPayment(termsOf(await system.ask({ key })), { wallet, ...named(identifier) })
  const done = await system.ask({ key, headers: { ...paid.headers, prefer: 'wait=20' } })
  const { bytes } = await expectCompleted(t, done)

  // By the name of the payment, which the true payer may use under another key.
  const twin = randomUUID()
  const terms = termsOf(await system.ask({ key: twin }))
  const true_ = await signPayment(terms, { wallet, ...named(identifier) })
  t.equal((await expectCompleted(t, await system.ask({ key: twin, headers: true_.headers }))).bytes, bytes)
  // By the name, and by the nonce of the authorization.
  const forgeries: Record<string, string>[] = [{ from: wallet.address }, { from: wallet.address, nonce: paid.nonce }]
  for (const authorization of forgeries) {
    const forged = await signPayment(terms, { wallet: other, authorization, ...named(identifier) })
    const refused = await system.ask({ key: twin, headers: forged.headers })
    t.equal(refused.headers.get('x-service-recovery-token'), null)
    const { error } = await expectNonCompleted(t, refused, 402)
    t.equal(error.code, 'payment_invalid')
  }
})
