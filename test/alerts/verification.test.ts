// The client's verifier of alerts: with the vectors, with alerts of the service, and as its README calls it.
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { type AlertOptions, type PinnedKey, verifyAlert } from '../../client/alert.ts'
import { openAlertHarness } from './harness.ts'
import { ALERT_OPTIONS, type AlertCase, alertCases, BODY, ID, SECRET, SENT, send, webhookPins } from './issuer.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const vectors = JSON.parse(read('../vectors/alert.json')) as {
  options: { secret: string; keys: PinnedKey[]; now: number }
  cases: AlertCase[]
}

t.test('the vectors are what the second implementation issues', async (t) => {
  t.same(vectors, JSON.parse(JSON.stringify({ options: ALERT_OPTIONS, cases: alertCases() })))
})

for (const { name, headers, body, options, expect, signed_by, receipted } of vectors.cases)
  t.test(name, async (t) => {
    const given = { ...vectors.options, ...(options as AlertOptions) }
    for (const bytes of [body, Buffer.from(body)]) {
      const verdict = verifyAlert({ headers, body: bytes, ...given })
      t.equal(verdict.ok ? 'ok' : verdict.reason, expect, JSON.stringify(verdict))
      if (!verdict.ok) t.equal(typeof verdict.detail, 'string')
      if (verdict.ok)
        t.same(verdict, { ok: true, alert: { ...JSON.parse(body), id: ID }, signedBy: signed_by, receipted })
    }
  })

t.test('the stock library agrees wherever there is a v1', async (t) => {
  const RealDate = Date
  t.intercept(globalThis, 'Date', {
    value: class extends RealDate {
      static override now = () => ALERT_OPTIONS.now
    },
  })
  const { headers, body } = send()
  t.same(new Webhook(SECRET).verify(body, headers as Record<string, string>), JSON.parse(BODY))
})

t.test('headers of fetch, of Node, and none', async (t) => {
  const { headers, body } = send()
  t.ok(verifyAlert({ headers: new Headers(headers as Record<string, string>), body, ...ALERT_OPTIONS }).ok)
  t.ok(verifyAlert({ headers: new Map(Object.entries(headers as Record<string, string>)), body, ...ALERT_OPTIONS }).ok)
  const twice = new Headers(headers as Record<string, string>)
  twice.append('webhook-signature', String(headers['webhook-signature']))
  t.match(verifyAlert({ headers: twice, body, ...ALERT_OPTIONS }), { ok: false, reason: 'malformed_header' })
  t.match(verifyAlert({ headers: {}, body, ...ALERT_OPTIONS }), { ok: false, reason: 'missing_header' })
  t.match(verifyAlert({ headers: { 'webhook-id': undefined }, body, ...ALERT_OPTIONS }), { reason: 'missing_header' })
})

t.test('no bit of the body can change', async (t) => {
  const { headers, body } = send()
  const bytes = Buffer.from(body)
  const passed: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    if (verifyAlert({ headers, body: changed, secret: SECRET, now: ALERT_OPTIONS.now }).ok) passed.push(at)
  }
  t.same(passed, [])
})

t.test('with an invalid clock no alert is fresh', async (t) => {
  t.match(verifyAlert({ ...send(), ...ALERT_OPTIONS, now: Number.NaN }), { ok: false, reason: 'too_old' })
})

t.test('invalid options throw', async (t) => {
  const message = { ...send(), now: SENT * 1000 }
  const { pubkey_hex } = webhookPins[0]!
  const wrong: Record<string, AlertOptions> = {
    'nothing to check with': {},
    'no secret, no key': { secret: [], keys: [] },
    'keys of other uses only': { keys: [{ key_id: 1, use: 'lease', pubkey_hex }] },
    'a retired key only': { keys: [{ key_id: 1, use: 'webhook', status: 'retired', pubkey_hex }] },
    'a secret without its prefix': { secret: SECRET.slice(6) },
    'a secret that is too short': { secret: 'whsec_c2hvcnQ=' },
    'a secret that is no base64': { secret: `${SECRET}!` },
    'a key that is none': { keys: [{ key_id: 1, pubkey_hex: '00'.repeat(32) }] },
    'a tolerance below nothing': { secret: SECRET, toleranceSeconds: -1 },
    'a tolerance that is no number': { secret: SECRET, toleranceSeconds: Number.NaN },
  }
  for (const [name, options] of Object.entries(wrong))
    t.throws(() => verifyAlert({ ...message, ...options }), TypeError, name)
})

t.test('alerts of the service verify, also by the code of README', async (t) => {
  const harness = await openAlertHarness()
  t.teardown(() => harness[Symbol.asyncDispose]())
  const hook = await harness.makeHook()
  await harness.raise(hook)
  await harness.deliver()
  const [item] = await harness.receiver.arrivals(hook.path, 1)
  const { body } = item!
  const headers = item!.headers as Record<string, string>
  const { keys } = (await (await fetch(harness.front.url('/v1/keys'))).json()) as { keys: PinnedKey[] }
  t.match(verifyAlert({ headers, body, secret: hook.secret, keys }), {
    ok: true,
    alert: { id: headers['webhook-id'], type: 'watchdog.missed', data: { event_seq: 1 } },
    signedBy: ['v1', 'v1a'],
    receipted: true,
  })

  const [, recipe = ''] =
    read('../../docs/guide/sdk.md').match(/```js\n(import \{ createPublicKey, verify \}.*?)```/s) ?? []
  t.ok(recipe.trim().split('\n').length <= 9, 'a few lines')
  const { isAlert } = (await import(`data:text/javascript,${encodeURIComponent(recipe)}`)) as {
    isAlert(headers: object, body: Buffer, pubkeyHex: string): boolean
  }
  const pin = keys.find(({ use }) => use === 'webhook')!.pubkey_hex
  t.equal(isAlert(headers, body, pin), true)
  t.equal(isAlert(headers, Buffer.from(`${body} `), pin), false)
  t.equal(isAlert(headers, body, keys.find(({ use }) => use === 'receipt')!.pubkey_hex), false)
  t.equal(isAlert({ ...headers, 'webhook-signature': 'v1,x' }, body, pin), false)
  t.equal(isAlert({}, body, pin), false)
  const old = String(Number(headers['webhook-timestamp']) - 301)
  t.equal(isAlert({ ...headers, 'webhook-timestamp': old }, body, pin), false)
})
