// Cosignatures by witnesses that check what they sign, and the published checkpoint when they do not answer.
import { createPublicKey, verify } from 'node:crypto'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { verifierKey } from '../../server/receipts/checkpoint.ts'
import { deriveKey } from '../../server/receipts/keys.ts'
import { readWitnesses } from '../../server/receipts/witness-list.ts'
import { findPublished, openWitnessing } from '../../server/receipts/witnessing.ts'
import { openLog } from '../../server/telemetry.ts'
import { keptOfOctets } from '../octets.ts'
import { startSystem } from '../system.ts'
import { ORIGIN, openTestLog, type TestLog } from './log.ts'
import { openScriptedWitness, type ScriptedWitness } from './scripted-witness.ts'

async function openWitnessed(names: string[]) {
  await using opened = new AsyncDisposableStack()
  const log = opened.use(await openTestLog())
  const vkey = verifierKey(ORIGIN, deriveKey(log.seed, 'checkpoint', 1).publicKeyHex)
  const witnesses: ScriptedWitness[] = []
  for (const name of names) witnesses.push(opened.use(await openScriptedWitness(name, vkey)))
  const config = { witnesses: readWitnesses(witnesses.map((one) => one.entry).join(', ')) }
  const logged: { event: string; witness?: string }[] = []
  const logger = openLog('debug', { write: (line) => logged.push(JSON.parse(line)) })
  const witnessing = opened.use(openWitnessing(log.db, config.witnesses, logger, { intervalS: 0 }))
  const closing = opened.move()
  return {
    log,
    witnesses: witnesses as [ScriptedWitness, ...ScriptedWitness[]],
    witnessing,
    logged,
    published: () => findPublished({ db: log.db, config }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Names of the witnesses whose cosignature in a note is good: tlog-cosignature by its text. */
function cosigners(note: string | null, witnesses: ScriptedWitness[]): string[] {
  const text = note!.slice(0, note!.lastIndexOf('\n\n') + 1)
  const lines = note!.slice(text.length + 1).split('\n')
  return witnesses.flatMap(({ vkey }) => {
    const [, name = '', id, key = ''] = vkey.match(/^(.*?)\+(.*?)\+(.*)$/)!
    const x = Buffer.from(key, 'base64').subarray(1).toString('base64url')
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    const good = lines.some((line) => {
      const blob = Buffer.from(line.split(' ')[2] ?? '', 'base64')
      if (!line.startsWith(`\u2014 ${name} `) || blob.subarray(0, 4).toString('hex') !== id) return false
      const message = `cosignature/v1\ntime ${blob.readBigUInt64BE(4)}\n${text}`
      return verify(null, Buffer.from(message), publicKey, blob.subarray(12))
    })
    return good ? [name] : []
  })
}

const sizeOf = (note: string | null) => Number(note?.split('\n')[1])
const age = (log: TestLog) => log.damage(`update witnessed_checkpoint set published_at = now() - interval '1 hour'`)

t.test('witnesses sign every submitted head, with proof that it continues the one before', async (t) => {
  await using set = await openWitnessed(['witness.test/one', 'witness.test/two'])
  const { log, witnesses, witnessing, published } = set
  t.equal(await witnessing.runOnce(), null, 'there is nothing to sign before the first receipt')
  t.equal(await published(), null)
  for (const count of [1, 6, 300, 0]) {
    if (count > 0) await log.append(count)
    const { serial, checkpoint } = await log.head()
    t.equal(await witnessing.runOnce(), 2)
    const note = await published()
    t.ok(note?.startsWith(checkpoint), 'the log’s own signature stays')
    t.same(cosigners(note, witnesses), ['witness.test/one', 'witness.test/two'], `size ${serial}`)
    t.match(witnesses[0].state, { size: serial })
  }
  t.same(
    witnesses[0].received.map(({ body, status }) => [body.split('\n')[0], status]),
    [
      ['old 0', 200],
      ['old 1', 200],
      ['old 7', 200],
      ['old 307', 200],
    ],
  )
})

t.test('a process that does not know the size a witness signed asks again with the size in its answer', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  const { log, witnesses, witnessing } = set
  await log.append(5)
  await witnessing.runOnce()
  await log.append(5)
  const config = { witnesses: readWitnesses(witnesses[0].entry) }
  await using restarted = openWitnessing(log.db, config.witnesses, openLog('silent'), { intervalS: 0 })
  t.equal(await restarted.runOnce(), 1)
  t.same(
    witnesses[0].received.slice(1).map(({ body, status }) => [body.split('\n')[0], status]),
    [
      ['old 0', 409],
      ['old 5', 200],
    ],
  )
  t.equal(await witnessing.runOnce(), 1, 'and one whose memory is old does so too')
})

t.test('the cosignature of a witness that fails is missing, and nothing stops', async (t) => {
  await using set = await openWitnessed(['witness.test/one', 'witness.test/two'])
  const { log, witnesses, witnessing, published, logged } = set
  await log.append(3)
  await witnessing.runOnce()
  const failures: Parameters<ScriptedWitness['misbehave']>[0][] = [
    () => ({ status: 500, body: 'down\n' }),
    () => ({ status: 403, body: 'who are you\n' }),
    () => ({ status: 200, body: '' }),
    () => ({ status: 200, body: 'not a signature line\n' }),
    (honest) => ({ status: 200, body: honest.replace('witness.test/one', 'witness.test/else') }),
    (honest) => ({ status: 200, body: honest.slice(0, -9) }),
    () => ({ status: 409, body: '99999\n' }),
    () => ({ status: 409, body: 'nonsense\n' }),
    () => ({ status: 302, body: '' }),
    (honest) => ({ status: 200, body: `${honest}${'\u2014 padding of a megabyte\n'.repeat(40_000)}` }),
    (honest) => {
      // Another signature by another time: valid base64, right key id, wrong signature.
      const [dash, name, base64 = ''] = honest.trimEnd().split(' ')
      const blob = Buffer.from(base64, 'base64')
      blob[20]! ^= 1
      return { status: 200, body: `${dash} ${name} ${blob.toString('base64')}\n` }
    },
  ]
  for (const failure of failures) {
    await log.append(1)
    logged.length = 0
    witnesses[0].misbehave(failure)
    t.equal(await witnessing.runOnce(), 1)
    t.match(
      logged.find(({ event }) => event === 'witness_failed'),
      { witness: 'witness.test/one' },
      String(failure),
    )
    const note = await published()
    t.equal(sizeOf(note), (await log.head()).serial)
    t.same(cosigners(note, witnesses), ['witness.test/two'])
  }
  witnesses[0].misbehave(null)
  await log.append(1)
  t.equal(await witnessing.runOnce(), 2, 'and is back as soon as it answers')
})

t.test('of an answer that arrives octet by octet, no piece is kept', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  await set.log.append(3)
  const kept = await keptOfOctets(16_000, () => set.witnessing.runOnce())
  t.ok(kept < 1000, `${kept} pieces are kept`)
  t.equal(set.logged.filter(({ event }) => event === 'witness_failed').length, 1)
})

t.test('an unmoved head keeps the cosignatures it has', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  const { log, witnesses, witnessing, published } = set
  await log.append(2)
  await witnessing.runOnce()
  witnesses[0].misbehave(() => ({ status: 500, body: '' }))
  t.equal(await witnessing.runOnce(), 0)
  t.same(cosigners(await published(), witnesses), ['witness.test/one'])
})

t.test('a witness that sees a fork does not sign it', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  const { log, witnesses, witnessing } = set
  await log.append(4)
  await witnessing.runOnce()
  await log.append(4)
  witnesses[0].state.root = '0'.repeat(64)
  t.equal(await witnessing.runOnce(), 0)
  t.equal(witnesses[0].received.at(-1)?.status, 422)
})

t.test('the published checkpoint never shrinks, also after a long pause', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  const { log, witnesses, witnessing, published } = set
  await log.append(2)
  await witnessing.runOnce()
  await log.append(2)
  t.equal(sizeOf(await published()), 2, 'until the next round')
  await age(log)
  t.equal(await published(), null, 'the head itself serves')
  const during: ReturnType<typeof published>[] = []
  witnesses[0].misbehave(() => {
    // Read during the round: the head of this round must be published already.
    during.push(published())
    return { status: 500, body: '' }
  })
  await witnessing.runOnce()
  const served = [...(await Promise.all(during)), await published()]
  t.same(served.map(sizeOf), [4, 4])
})

t.test('one process at a time runs a round', async (t) => {
  await using set = await openWitnessed(['witness.test/one'])
  const { log, witnesses } = set
  await log.append(2)
  const config = readWitnesses(witnesses[0].entry)
  const rounds = Array.from({ length: 4 }, () => openWitnessing(log.db, config, openLog('silent'), { intervalS: 3600 }))
  await Promise.all(rounds.map((one) => one[Symbol.asyncDispose]()))
  t.equal(witnesses[0].received.length, 1)
})

t.test('off unless it is configured; then part of the API process', async (t) => {
  await using system = await startSystem()
  t.same(system.service.api.config.witnesses, [])
  const appended = { subjectSha256: '0'.repeat(64), label: null, requestedBy: 'tester' }
  await system.service.api.chain.append(appended)
  const { vkey } = (await (await fetch(system.url('/v1/chain-head'))).json()) as { vkey: string }
  await using witness = await openScriptedWitness('witness.test/one', vkey)
  const twin = await system.openTwin({}, { WITNESSES: witness.entry })
  await twin[Symbol.asyncDispose]()
  t.equal(witness.received.length, 1, 'the first round begins at once and ends before the process does')
  t.match(witness.state, { size: 1 })
})

t.test('the configuration', async (t) => {
  await using witness = await openScriptedWitness('witness.test/one', 'x+00000000+AQ==')
  const [read] = readWitnesses(witness.entry)
  t.match(read, { name: 'witness.test/one', url: /\/w$/ })
  const wrong: [string, RegExp][] = [
    [witness.vkey, /pairs of a verifier key and a URL/],
    [`${witness.vkey} ftp://x`, /pairs/],
    [witness.entry.replace(/\+[0-9a-f]{8}\+/, '+00000000+'), /key id of the verifier key does not fit/],
    [`${verifierKey('witness.test/one', '00'.repeat(32))} https://x`, /type 4/],
    [`${witness.entry},`, /pairs/],
  ]
  for (const [text, message] of wrong) t.throws(() => readConfig({ WITNESSES: text }), message, text)
})
