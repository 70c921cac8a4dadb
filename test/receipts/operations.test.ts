import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { startSystem } from '../system.ts'

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

t.test('an account signs digests into the chain and reads them back', async (t) => {
  await using system = await startSystem()
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(system.url(path), {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: JSON.parse((await response.text()) || 'null') }
  }
  t.match(await call('GET', '/v1/chain-head'), { status: 200, body: { serial: 0, receipt_hash: '0'.repeat(64) } })
  const registered = await call('POST', '/v1/register', { handle: 'kelby' })
  t.match(registered, { status: 201, body: { handle: 'kelby', tier: 'free', limits: { receipts_per_day: 10 } } })
  t.match(await call('POST', '/v1/register', { handle: 'kelby' }), {
    status: 409,
    body: { error: { code: 'handle_taken' } },
  })
  t.match(await call('POST', '/v1/register', { handle: 'source-verification' }), { status: 409 })
  const auth = { authorization: `Bearer ${registered.body.api_key}` }

  const submit = (n: number, headers = {}) =>
    call('POST', '/v1/receipt', { subject_sha256: digest(`subject ${n}`), label: `n ${n}` }, { ...auth, ...headers })
  const key = { 'idempotency-key': randomUUID() }
  const first = await submit(1, key)
  t.match(first, { status: 201, body: { attestation: { serial: 1, requested_by: 'kelby', label: 'n 1' } } })
  const repeat = await submit(1, key)
  t.equal(repeat.status, 200)
  t.same(repeat.body.attestation, first.body.attestation)
  t.match(await submit(2, key), { status: 409, body: { error: { code: 'idempotency_conflict' } } })
  const made = await Promise.all(Array.from({ length: 9 }, (_, n) => submit(n + 2)))
  t.same(
    made.map((answer) => answer.status),
    Array(9).fill(201),
  )
  const over = await submit(11)
  t.match(over, { status: 429, body: { error: { code: 'daily_limit' } } })
  t.match(over.headers.get('retry-after'), /^\d+$/)

  const page = await call('GET', '/v1/chain')
  t.match(page.body, { from: 1, to: 10, head_serial: 10 })
  const bySerial = new Map(made.map((answer) => [answer.body.attestation.serial, answer.body.attestation]))
  for (const attestation of page.body.attestations.slice(1)) t.same(attestation, bySerial.get(attestation.serial))
  t.match(await call('GET', '/v1/chain?from=5&to=4'), { status: 400 })
  t.match(await call('GET', '/v1/chain?from=1&to=1001'), { status: 400 })
  t.match((await call('GET', '/v1/chain?from=20')).body, { from: 20, attestations: [] })
  t.match(await call('POST', '/v1/receipt', { subject_sha256: digest('x') }), { status: 401 })
  t.match(await call('GET', '/v1/receipt/3?tree_size=7'), {
    status: 200,
    body: { inclusion: { leaf_index: 2, tree_size: 7 } },
  })
})
