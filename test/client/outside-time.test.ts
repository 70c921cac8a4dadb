// Replies of time-stamp authorities beside an export: `countersign verify` and the independent auditor say what existed when, and name
// each fault.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readReplies } from '../../client/outside-time.ts'
import type { Attestation } from '../../client/verification.ts'
import { audit, withoutAuditor } from '../auditor.ts'
import { Certificates, withoutOpenssl } from '../time-stamp-authority.ts'
import { countersign } from './command-line.ts'
import { issueCheckpoint, issueExport, issueReceipt, issuerKey, VKEY } from './log-issuer.ts'

const KEY = issuerKey(1)
const HOUR_MS = 3_600_000

/** A chain of 20 receipts, one a second. @param end when the last one was made */
function issueChain(end: number, label: string | null = null): Attestation[] {
  const chain: Attestation[] = []
  for (let serial = 1; serial <= 20; serial++)
    chain.push(
      issueReceipt(
        { serial, label, prev_hash: chain.at(-1)?.receipt_hash ?? '0'.repeat(64), ts_ms: end - (20 - serial) * 1000 },
        KEY,
      ),
    )
  return chain
}

const chain = issueChain(Date.now() - HOUR_MS)
const PIN = ['--pin', `1:${KEY.pubkey_hex}`, '--vkey', VKEY]

t.test('an export with timestamps', { skip: withoutOpenssl || withoutAuditor }, async (t) => {
  using made = new Certificates()
  made.issue('one')
  made.issue('two')
  made.issue('expired', { days: -1 })
  using foreign = new Certificates('Foreign root')
  foreign.issue('one')
  const line = async (note: string, name = 'one', by = made, about = note) =>
    `${JSON.stringify({ note, reply_base64: (await by.reply(await by.query(about), name)).toString('base64') })}\n`
  const noteOf = (size: number, of = chain) => issueCheckpoint(of.slice(0, size))
  const folder = t.testdir({})
  const roots = made.path('root.pem')
  let files = 0
  const both = async (lines: string, { of = chain, ca = roots }: { of?: Attestation[]; ca?: string | null } = {}) => {
    const file = join(folder, `${files++}.jsonl`)
    writeFileSync(file, issueExport(of))
    writeFileSync(`${file}.timestamps`, lines)
    const trusting = ca === null ? [] : ['--timestamp-ca', ca]
    const ours = await countersign(['verify', file, ...PIN, ...trusting])
    return {
      file,
      ours,
      theirs: await audit(file, ...PIN, '--timestamps', `${file}.timestamps`, '--timestamp-ca', ca ?? roots),
    }
  }

  const [five, whole, other] = await Promise.all([line(noteOf(5)), line(noteOf(20)), line(noteOf(20), 'two')])
  const good = await both(five + whole + other)
  const said = /^ok {3}timestamps: The chain up to 20 existed at 20\S+Z, by Test one; 2 other replies prove/m
  t.match(good.ours, { code: 0, stdout: said }, good.ours.stdout)
  t.match(
    good.theirs,
    { code: 0, stdout: /; 3 timestamps by openssl ts, the chain up to 20 existed at 20\S+Z\n/ },
    good.theirs.stderr,
  )
  const asJson = await countersign(['verify', good.file, ...PIN, '--timestamp-ca', roots, '--json'])
  const { ok, timestamps } = JSON.parse(String(asJson.stdout))
  t.equal(ok, true)
  t.match(timestamps, [
    { tree_size: 5, authority: 'Test one' },
    { tree_size: 20 },
    { tree_size: 20, authority: 'Test two' },
  ])

  // Without roots of the authority nothing is claimed, and nothing is wrong.
  const unknown = await both(whole, { ca: null })
  t.match(unknown.ours, {
    code: 0,
    stdout: /ok {3}timestamps: nothing is proved; not proved: no trusted root leads to Test one/,
  })

  const reply = (text: string) => Buffer.from(JSON.parse(text).reply_base64, 'base64')
  const changed = reply(whole)
  changed[changed.length - 6]! ^= 1
  const faults: [string, RegExp, string, Parameters<typeof both>[1]?][] = [
    [
      'another chain',
      /20 receipts is about another chain/,
      await line(noteOf(20, issueChain(Date.now() - HOUR_MS, 'x'))),
    ],
    ['a longer chain', /20 receipts: these are fewer/, whole, { of: chain.slice(0, 10) }],
    [
      'a root that was not given',
      /no trusted root leads to|unable to get|self-signed/,
      whole,
      { ca: foreign.path('root.pem') },
    ],
    ['an expired certificate', /had expired|has expired/, await line(noteOf(20), 'expired')],
    ['other bytes', /another digest|message imprint mismatch/, await line(noteOf(20), 'one', made, 'x')],
    [
      'a changed signature',
      /signature of the token is wrong|signature failure/,
      whole.replace(/"reply_base64":"[^"]*"/, `"reply_base64":"${changed.toString('base64')}"`),
    ],
  ]
  for (const [name, problem, lines, options] of faults) {
    const { ours, theirs } = await both(five + lines, options)
    t.match(ours, { code: 1, stdout: new RegExp(`^FAIL timestamps: .*(${problem.source})`, 'm') }, name)
    t.match(theirs, { code: 1, stderr: new RegExp(`^BAD timestamps: .*(${problem.source})`) }, name)
  }
  const late = issueChain(Date.now() + HOUR_MS)
  const ahead = await both(await line(noteOf(20, late)), { of: late })
  t.match(ahead.ours, { code: 1, stdout: /^FAIL timestamps: .*receipt 20 says a later time than/m })
  for (const lines of [
    'x\n',
    '{}\n',
    whole.trimEnd(),
    whole.replace(/"note":"[^"]*"/, '"note":"x"'),
    whole.replace(/reply_base64":"/, '$&!'),
  ]) {
    const { ours, theirs } = await both(lines)
    t.match(ours, { code: 2, stderr: /Cannot use .*timestamps: / }, lines.slice(0, 20))
    t.match(theirs, { code: 1, stderr: /^BAD / }, lines.slice(0, 20))
  }
})

t.test('options that say nothing are refused', async (t) => {
  const folder = t.testdir({ 'no.timestamps': '', 'result.json': '{"receipt":{}}' })
  const file = join(folder, 'chain.jsonl')
  writeFileSync(file, issueExport(chain))
  t.match(await countersign(['verify', file, ...PIN, '--timestamp-ca', file]), { code: 2, stderr: /there are none/ })
  const result = ['verify', join(folder, 'result.json'), '--pin', `1:${KEY.pubkey_hex}`]
  t.match(await countersign([...result, '--timestamps', join(folder, 'no.timestamps')]), {
    code: 2,
    stderr: /about an export/,
  })
  t.match(await countersign(['verify', file, ...PIN, '--timestamps', join(folder, 'none')]), {
    code: 2,
    stderr: /Cannot read/,
  })
  t.same(readReplies(''), [])
})
