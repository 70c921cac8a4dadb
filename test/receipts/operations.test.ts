// The operations on receipts and the chain over HTTP.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { trustIntroduced, verifyAttestation, verifyReceipt } from '../../client/verification.ts'
import { getChain, getChainHead, getKeys } from '../../server/receipts/chain-operations.ts'
import { getReceipt } from '../../server/receipts/operations.ts'
import { rotateKey } from '../../server/receipts/rotation.ts'
import { startSystem } from '../system.ts'
import { entry } from './log.ts'

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

  const texts: [path: string, member: string, rest: object][] = [
    ['/v1/receipt', 'label', { subject_sha256: digest('x') }],
    ['/v1/api-keys', 'label', { scopes: ['receipt:write'] }],
    ['/v1/heartbeat/job', 'note', { status: 'fail' }],
  ]
  for (const [path, member, rest] of texts)
    for (const character of ['\u202e', '\u2028', '\u2029', '\u2066', '\u200f', '\u061c', '\n', '\u0085', '\u0000'])
      t.match(
        await call('POST', path, { ...rest, [member]: `paid${character}100` }, auth),
        {
          status: 400,
          body: { error: { code: 'invalid_request', message: new RegExp(`${member}: must be one line`) } },
        },
        `${path} U+${character.codePointAt(0)?.toString(16)}`,
      )

  const page = await call('GET', '/v1/chain')
  t.match(page.body, { from: 1, to: 10, head_serial: 10 })
  const bySerial = new Map(made.map((answer) => [answer.body.attestation.serial, answer.body.attestation]))
  for (const attestation of page.body.attestations.slice(1)) t.same(attestation, bySerial.get(attestation.serial))
  t.match(await call('GET', '/v1/chain?from=5&to=4'), { status: 400 })
  t.match(await call('GET', '/v1/chain?from=1&to=1001'), { status: 400 })
  t.same((await call('GET', '/v1/chain?from=20')).body, { from: 20, to: 19, head_serial: 10, attestations: [] })
  t.same((await call('GET', '/v1/chain?from=11')).body, { from: 11, to: 10, head_serial: 10, attestations: [] })
  const last = Number.MAX_SAFE_INTEGER
  t.match((await call('GET', `/v1/chain?from=${last}`)).body, { from: last, attestations: [] }, 'the highest number')
  t.match((await call('GET', '/v1/chain?from=9&to=500')).body, { from: 9, to: 10, head_serial: 10 })
  t.match((await call('GET', '/v1/chain?from=20&to=30')).body, { from: 20, to: 19, attestations: [] })
  t.match(await call('POST', '/v1/receipt', { subject_sha256: digest('x') }), { status: 401 })
  t.match(await call('GET', '/v1/receipt/3?tree_size=7'), {
    status: 200,
    body: { inclusion: { leaf_index: 2, tree_size: 7 } },
  })
})

t.test('pages that cannot change are immutable in caches; others are revalidated', async (t) => {
  await using system = await startSystem()
  const { chain } = system.service.api
  const append = (count: number) => Promise.all(Array.from({ length: count }, (_, n) => chain.append(entry(n))))
  const get = (path: string, headers: Record<string, string> = {}) => fetch(system.url(path), { headers })
  await append(12)
  const page = await get('/v1/chain?from=3&to=12')
  t.match(page.headers.get('cache-control'), /immutable/)
  t.match((await get('/v1/chain?to=12')).headers.get('cache-control'), /immutable/, 'from serial 1')
  const etag = page.headers.get('etag') ?? ''
  t.match(etag, /^W\/"3-12-[0-9a-f]{64}"$/)
  const { head_serial, ...fixed } = getChain.output.parse(await page.json())
  t.equal(head_serial, 12)

  for (const path of ['/v1/chain', '/v1/chain?from=3', '/v1/chain?from=3&to=13', '/v1/chain?from=13&to=13']) {
    const open = await get(path)
    t.notMatch(open.headers.get('cache-control'), /immutable/, path)
    t.equal(open.status, 200)
  }
  const grown = (await get('/v1/chain?from=3')).headers.get('etag') ?? ''
  t.equal(grown, etag, 'the same range in other words')
  await append(5)
  t.same(await (await get('/v1/chain?from=3&to=12')).json(), { ...fixed, head_serial: 17 }, 'but for the head of now')
  t.not((await get('/v1/chain?from=3')).headers.get('etag'), etag, 'and it has grown')

  for (const condition of [etag, `"x", ${etag}`, etag.slice(2), '*']) {
    const kept = await get('/v1/chain?from=3&to=12', { 'if-none-match': condition })
    t.equal(kept.status, 304, condition)
    t.equal(kept.headers.get('etag'), etag)
    t.equal(await kept.text(), '')
  }
  t.equal((await get('/v1/chain?from=3&to=12', { 'if-none-match': '"x"' })).status, 200)
  t.equal((await get('/v1/chain?from=4&to=12', { 'if-none-match': etag })).status, 200)
})

t.test('a full page names the head of now, which tells a reader how far the chain goes', async (t) => {
  await using system = await startSystem()
  const { chain } = system.service.api
  const append = (count: number) => Promise.all(Array.from({ length: count }, (_, n) => chain.append(entry(n))))
  const page = async (query: string) =>
    getChain.output.parse(await (await fetch(system.url(`/v1/chain${query}`))).json())
  await append(1001)
  t.match(await page('?from=1&to=1000'), { to: 1000, head_serial: 1001 })
  await append(3)
  for (const query of ['', '?from=1', '?from=1&to=1000'])
    t.match(await page(query), { to: 1000, head_serial: 1004 }, query)
})

t.test('when the queue is full, callers get 503 with Retry-After', async (t) => {
  await using system = await startSystem()
  const registered = await fetch(system.url('/v1/register'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ handle: 'kelby' }),
  })
  const { api_key } = (await registered.json()) as { api_key: string }
  const post = () =>
    fetch(system.url('/v1/receipt'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${api_key}` },
      body: JSON.stringify({ subject_sha256: digest('x') }),
    })
  // A lock on the head stops all appends.
  const holder = new pg.Client({ connectionString: system.databaseUrl })
  await holder.connect()
  await holder.query('begin')
  await holder.query('select serial from chain_head for update')
  const waiting = Array.from({ length: 4096 }, (_, n) => system.service.api.chain.append(entry(n)))
  const refused = await post()
  t.equal(refused.status, 503)
  t.match(refused.headers.get('retry-after'), /^[1-4]$/)
  t.match(await refused.json(), { error: { code: 'capacity_exceeded', retryable: true } })
  await holder.query('commit')
  await holder.end()
  await Promise.all(waiting)
  t.equal((await post()).status, 201, 'after the lock is free there is room again')
  t.match(await (await fetch(system.url('/v1/chain-head'))).json(), { serial: 4097 })
})

t.test('the head names a key that signed its checkpoint, also right after a rotation', async (t) => {
  const seed = randomBytes(32)
  await using system = await startSystem({ env: { SIGNING_SEED: seed.toString('hex') } })
  const { chain, db } = system.service.api
  const get = async () => getChainHead.output.parse(await (await fetch(system.url('/v1/chain-head'))).json())
  const isSigned = async () => {
    const { vkey, checkpoint, serial } = await get()
    const { attestation, inclusion } = getReceipt.output.parse(
      await (await fetch(system.url(`/v1/receipt/${serial}`))).json(),
    )
    const keys = [{ key_id: attestation.key_id, pubkey_hex: attestation.pubkey_hex }]
    return verifyReceipt({ attestation, inclusion, checkpoint }, { keys, vkey }).ok && vkey
  }
  await chain.append(entry(1))
  const first = await isSigned()
  t.ok(first)
  await rotateKey(db, seed, 'checkpoint', { origin: chain.origin, now: Date.now })
  t.equal(await isSigned(), first, 'the new key is introduced under the old one')
  await chain.append(entry(2))
  t.not(await isSigned(), first)
  t.ok(await isSigned())
})

t.test('keys are listed with their serials and their introductions', async (t) => {
  const seed = randomBytes(32)
  await using system = await startSystem({ env: { SIGNING_SEED: seed.toString('hex') } })
  const { chain, db } = system.service.api
  await chain.append(entry(1))
  for (const use of ['receipt', 'checkpoint', 'receipt'] as const)
    await rotateKey(db, seed, use, { origin: chain.origin, now: Date.now })
  await chain.append(entry(2))
  const { keys } = getKeys.output.parse(await (await fetch(system.url('/v1/keys'))).json())
  t.match(
    keys.filter((key) => key.use === 'receipt'),
    [
      { status: 'retired', first_serial: 1, last_serial: 2, introduced_by: null, introduction: null },
      { status: 'retired', first_serial: 3, last_serial: 4, introduced_by: 2, introduction: { serial: 2 } },
      { status: 'active', first_serial: 5, last_serial: null, introduced_by: 4, introduction: { serial: 4 } },
    ],
  )
  const [first] = keys.filter((key) => key.use === 'receipt')
  const trusted = trustIntroduced(keys, [{ key_id: first!.key_id, pubkey_hex: first!.pubkey_hex }])
  t.same(trusted.map((key) => key.use ?? 'receipt').sort(), ['checkpoint', 'receipt', 'receipt', 'receipt'])
  const page = getChain.output.parse(await (await fetch(system.url('/v1/chain'))).json())
  for (const attestation of page.attestations)
    t.ok(verifyAttestation(attestation, { keys: trusted }).ok, `serial ${attestation.serial}`)
  const head = getChainHead.output.parse(await (await fetch(system.url('/v1/chain-head'))).json())
  t.match(head, { serial: 5, key_id: page.attestations[4]!.key_id, ts_ms: page.attestations[4]!.ts_ms })
  const { vkey } = keys.find((key) => key.use === 'checkpoint' && key.status === 'active')!
  t.equal(head.vkey, vkey)
  for (const { serial } of page.attestations) {
    const receipt = getReceipt.output.parse(await (await fetch(system.url(`/v1/receipt/${serial}`))).json())
    const { ok, checks } = verifyReceipt(receipt, { keys: trusted, vkey: vkey!, tree: head })
    t.ok(ok, JSON.stringify(checks.filter((check) => !check.ok)))
  }
})
