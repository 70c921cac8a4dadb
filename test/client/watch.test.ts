// `countersign watch` with a log that is honest, shortened, forked, or different for different callers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { checkHead, type Pinned } from '../../client/chain/watch.ts'
import { Countersign } from '../../client/client.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { jcs, sha256 } from './issuer.ts'
import {
  CHECKPOINT_KEY,
  type IssuerKey,
  issueCheckpoint,
  issueLog,
  issueReceipt,
  issuerKey,
  keyRecord,
  VKEY,
  verifierKey,
} from './log-issuer.ts'
import { openLogServer, type Shown } from './log-server.ts'

const { chain, keys } = issueLog([20])
/** The same log up to serial 12, and then another history under the same keys. */
const fork = chain.slice(0, 12)
while (fork.length < 20) {
  const prev_hash = fork.at(-1)!.receipt_hash
  fork.push(issueReceipt({ serial: fork.length + 1, prev_hash, label: 'another history' }, keys[0]!))
}

async function sightings(
  t: Parameters<typeof openLogServer>[0],
  shown: Shown[],
  options: Parameters<typeof checkHead>[2] = {},
) {
  const { baseUrl, show } = await openLogServer(t, shown[0]!)
  const service = new Countersign({ baseUrl })
  let pinned: Pinned | null = null
  const verdicts: string[] = []
  for (const one of shown) {
    show(one)
    const { verdict, detail, seen } = await checkHead(service, pinned, options)
    verdicts.push(verdict)
    if (verdict === 'invalid') verdicts[verdicts.length - 1] = `invalid: ${detail}`
    if (['pinned', 'unchanged', 'advanced'].includes(verdict)) pinned = seen
  }
  return verdicts
}

const upTo = (length: number, history = chain): Shown => ({ chain: history.slice(0, length) })

t.test('an honest log', async (t) => {
  const shown = [upTo(0), upTo(0), upTo(1), upTo(2), upTo(2), upTo(12), upTo(16), upTo(20)]
  t.same(await sightings(t, shown, { vkey: VKEY }), [
    'pinned',
    'unchanged',
    'advanced',
    'advanced',
    'unchanged',
    'advanced',
    'advanced',
    'advanced',
  ])
})

t.test('continuations of many lengths, and no continuation of another history', async (t) => {
  const { baseUrl, show } = await openLogServer(t, upTo(0))
  const service = new Countersign({ baseUrl })
  const lengths = [1, 2, 3, 8, 12, 13, 16, 20]
  for (const before of lengths)
    for (const now of lengths) {
      show(upTo(before))
      const { seen } = await checkHead(service, null)
      show(upTo(now))
      const honest = (await checkHead(service, seen)).verdict
      const expected = now < before ? 'rollback' : now === before ? 'unchanged' : 'advanced'
      if (honest !== expected) t.fail(`${before} to ${now}: ${honest}`)
      show(upTo(now, fork))
      const forked = (await checkHead(service, seen)).verdict
      const shared = now < before ? 'rollback' : before <= 12 ? expected : 'fork'
      if (forked !== shared) t.fail(`${before} to ${now} of the other: ${forked}`)
    }
  t.pass(`${3 * lengths.length ** 2} checks`)
})

t.test('a shorter log is a rollback, another receipt in a pinned place a fork', async (t) => {
  t.same(await sightings(t, [upTo(15), upTo(14), upTo(15), upTo(20, fork), upTo(15, fork), upTo(16)]), [
    'pinned',
    'rollback',
    'unchanged',
    'fork',
    'fork',
    'advanced',
  ])
  t.same(await sightings(t, [upTo(15), upTo(0)]), ['pinned', 'rollback'])
})

t.test('a head whose parts do not agree', async (t) => {
  const head = (members: Record<string, unknown>): Shown => ({ ...upTo(15), head: members })
  const root_hash = '0'.repeat(64)
  const other = issuerKey(55)
  const shown: [Shown, RegExp][] = [
    [head({ tree_size: 14 }), /covers 14 receipts of 15/],
    [head({ root_hash }), /of another head/],
    [head({ receipt_hash: chain[13]!.receipt_hash }), /the last receipt of the tree is another/],
    [head({ checkpoint: issueCheckpoint(chain.slice(0, 14)) }), /of another head/],
    [head({ checkpoint: issueCheckpoint(chain.slice(0, 15), [other]) }), /not signed by the pinned key/],
    [head({ checkpoint: issueCheckpoint(chain.slice(0, 15)).replace(/.{6}\n$/, 'AAAA=\n') }), /signature/],
    [head({ checkpoint: '' }), /is not a checkpoint/],
    [head({ serial: 14 }), /covers 15 receipts of 14/],
    [{ ...upTo(15), refuse: { '/v1/receipt': 404 } }, /does not prove its head/],
    [{ ...upTo(16), refuse: { '/v1/consistency': 400 } }, /does not prove its head/],
    [{ chain: [], head: { checkpoint: 'something' } }, /a checkpoint and no receipt/],
  ]
  for (const [one, detail] of shown) {
    const [first, second] = await sightings(t, [upTo(15), one], { vkey: VKEY })
    t.equal(first, 'pinned')
    t.match(second, detail)
  }
  t.match(await sightings(t, [upTo(15)], { vkey: verifierKey(other) }), [/^invalid: .*not signed by the pinned key/])
})

t.test('a log that changes its key goes on for those who pinned the old one, as long as both sign', async (t) => {
  const next = issuerKey(55)
  const both: Shown = {
    ...upTo(16),
    head: { checkpoint: issueCheckpoint(chain.slice(0, 16), [next, CHECKPOINT_KEY]), vkey: verifierKey(next) },
  }
  t.same(await sightings(t, [upTo(15), both]), ['pinned', 'advanced'])
})

t.test('the pin follows a key that the tree introduces, and no other', async (t) => {
  const next = issuerKey(55)
  const record = keyRecord(next, null, 'checkpoint')
  const introduction = issueReceipt(
    {
      serial: 16,
      prev_hash: chain[14]!.receipt_hash,
      subject_sha256: sha256(jcs(record)),
      requested_by: 'key-rotation',
      label: 'checkpoint-key',
    },
    keys[0]!,
  )
  const rotated = [...chain.slice(0, 15), introduction]
  while (rotated.length < 18)
    rotated.push(issueReceipt({ serial: rotated.length + 1, prev_hash: rotated.at(-1)!.receipt_hash }, keys[0]!))
  const key = { key_id: 55, use: 'checkpoint', pubkey_hex: next.pubkey_hex, status: 'active', introduction }
  const signed = (length: number, signers: IssuerKey[]) => issueCheckpoint(rotated.slice(0, length), signers)
  const at = (length: number, signers: IssuerKey[], shown: Partial<Shown> = {}): Shown => ({
    chain: rotated.slice(0, length),
    keys: [key],
    ...shown,
    head: { vkey: verifierKey(next), checkpoint: signed(length, signers), ...shown.head },
  })
  const { baseUrl, show } = await openLogServer(t, upTo(15))
  const service = new Countersign({ baseUrl })
  const { seen: pinned } = await checkHead(service, null, { vkey: VKEY })
  const seeing = async (shown: Shown, before = pinned, options = {}) => {
    show(shown)
    return checkHead(service, before, options)
  }

  const followed = await seeing(at(17, [next, CHECKPOINT_KEY]))
  t.match(followed, { verdict: 'advanced', detail: /^serial 15 to 17; the key has changed, as serial 16 says/ })
  t.equal(followed.seen.vkey, verifierKey(next))
  t.match(await seeing(at(18, [next]), followed.seen), { verdict: 'advanced', detail: 'serial 17 to 18' })
  t.match(await seeing(at(18, [CHECKPOINT_KEY]), followed.seen), { verdict: 'invalid', detail: /not signed/ })

  const missed = await seeing(at(18, [next]))
  t.match(missed, { verdict: 'invalid', detail: /not signed by the pinned key/ }, 'the old key has stopped signing')
  const given = await seeing(at(18, [next]), pinned, { vkey: verifierKey(next) })
  t.match(given, { verdict: 'advanced', seen: { vkey: verifierKey(next) } }, 'and then the new one must be given')

  const both = [next, CHECKPOINT_KEY]
  const forged = issueReceipt({ ...introduction, requested_by: 'mallory' }, keys[0]!)
  const unfollowed: [why: string, shown: Shown][] = [
    ['the new key does not sign yet', at(16, [CHECKPOINT_KEY])],
    ['it is not listed', at(17, both, { keys: [] })],
    ['nothing introduces it', at(17, both, { keys: [{ ...key, introduction: null }] })],
    ['for another use', at(17, both, { keys: [{ ...key, use: 'lease' }] })],
    ['made for an account', at(17, both, { keys: [{ ...key, introduction: forged }] })],
    ['not in the tree', at(17, both, { keys: [{ ...key, introduction: { ...introduction, serial: 15 } }] })],
    ['a receipt of another key', at(17, both, { keys: [{ ...key, key_id: 54 }] })],
    ['the list is withheld', at(17, both, { refuse: { '/v1/keys': 503 } })],
    ['of another log', at(17, both, { head: { vkey: verifierKey(next, 'elsewhere.test') } })],
    ['no verifier key at all', at(17, both, { head: { vkey: 'nonsense' } })],
  ]
  for (const [why, shown] of unfollowed) {
    const { verdict, detail, seen } = await seeing(shown)
    t.same([verdict, detail.includes('key'), seen.vkey], ['advanced', false, VKEY], why)
  }
})

t.test('a head that names another receipt than the last', async (t) => {
  const third = chain[2]!
  const tree = referenceTree(chain.slice(0, 15).map((one) => Buffer.from(one.receipt_hash, 'hex')))
  const hashes = tree.path(2, 15).map((hash) => hash.toString('hex'))
  const shown: Shown = {
    ...upTo(15),
    head: { receipt_hash: third.receipt_hash },
    // Any receipt of the tree can be proved: what counts is the place.
    answers: { '/v1/receipt': { inclusion: { leaf_index: 2, tree_size: 15, hashes } } },
  }
  t.match(await sightings(t, [shown], { vkey: VKEY }), [/^invalid: the last receipt of the tree is another/])
})

t.test('a proof of the wrong shape is an alarm, not an excuse', async (t) => {
  for (const answer of [{}, { inclusion: null }, { inclusion: { leaf_index: 14, tree_size: 15, hashes: ['x'] } }])
    t.match(await sightings(t, [{ ...upTo(15), answers: { '/v1/receipt': answer } }]), [/^invalid: .*does not prove/])
  const refused = { ...upTo(16), answers: { '/v1/consistency': { hashes: 'none' } } }
  t.match(await sightings(t, [upTo(15), refused]), ['pinned', /^invalid: .*does not prove/])
})

t.test('the first watch of a log whose verifier key is malformed', async (t) => {
  t.match(await sightings(t, [{ ...upTo(15), head: { vkey: 'nonsense' } }]), [/^invalid: .*without a verifier key/])
  await t.rejects(sightings(t, [upTo(15)], { vkey: 'nonsense' }), TypeError, 'but one that we give is our mistake')
})

t.test('a service that does not answer is no alarm', async (t) => {
  for (const [path, status] of [
    ['/v1/chain-head', 503],
    ['/v1/consistency', 500],
    ['/v1/receipt', 429],
  ] as const) {
    const refuse = { [path]: status }
    const error = await sightings(t, [upTo(15), { ...upTo(16), refuse }]).catch((error) => error)
    t.match(error, { name: 'CountersignError' }, path)
  }
})

t.test('the command line pins, reports and keeps the evidence', async (t) => {
  const { baseUrl, show } = await openLogServer(t, upTo(15))
  const folder = t.testdir({})
  const file = join(folder, 'pinned.json')
  const watch = async (...options: string[]) => {
    const child = spawn(process.execPath, [
      join(import.meta.dirname, '../../client/cli.ts'),
      'watch',
      baseUrl,
      file,
      '--once',
      ...options,
    ])
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code, stdout, stderr }
  }
  t.match(await watch('--vkey', VKEY), { code: 0, stdout: /Z pinned: serial 15\n$/, stderr: '' })
  t.match(JSON.parse(readFileSync(file, 'utf8')), { serial: 15, vkey: VKEY })
  show(upTo(17))
  t.match(await watch(), { code: 0, stdout: /Z advanced: serial 15 to 17\n$/ })
  show(upTo(20, fork))
  t.match(await watch(), { code: 1, stdout: /Z fork: /, stderr: /evidence-/ })
  show(upTo(3))
  t.match(await watch(), { code: 1, stdout: /Z rollback: serial 3, and 17 was pinned\n$/ })
  t.match(JSON.parse(readFileSync(file, 'utf8')), { serial: 17 }, 'the pin stays what it was')
  const evidence = readdirSync(folder).filter((name) => name.includes('evidence'))
  t.equal(evidence.length, 2)
  const [first] = evidence.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))
  t.match(first, { verdict: 'fork', before: { serial: 17 }, seen: { serial: 20, checkpoint: /^log\.test/ } })
  show({ ...upTo(17), refuse: { '/v1/chain-head': 503 } })
  t.match(await watch(), { code: 3, stderr: 'internal_error: refused\n' })
  const elsewhere = verifierKey(issuerKey(55), 'elsewhere.test')
  t.match(await watch('--vkey', elsewhere), { code: 2, stderr: /of the log log.test.*verifier key of another/ })
  t.match(await watch('--vkey', 'nonsense'), { code: 2, stderr: /name\+hash\+base64/ })
  t.match(await watch('--interval', '0'), { code: 2 })
  writeFileSync(file, '{}')
  t.match(await watch(), { code: 2, stderr: /does not hold what was pinned/ })
})
