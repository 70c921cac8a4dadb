// Time-stamp authorities in replays: replies in a package date the head of the log, and each change of one is named.
import t from 'tap'
import { openTimestampVerifier } from '../../client/timestamp.ts'
import { Certificates, withoutOpenssl as skip } from '../time-stamp-authority.ts'
import { issueCheckpoint, issuerKey } from './log-issuer.ts'
import { type Issued, issuePackage, withLists } from './package-issuer.ts'
import { replay, verdict } from './replayed.ts'
import { zipOf } from './zip.ts'

/** The package with these files in its folder of replies. */
function withReplies({ files, result }: Issued, replies: Record<string, Buffer | string>) {
  const all = new Map(files)
  for (const [name, bytes] of Object.entries(replies)) all.set(`evidence/timestamps/${name}`, Buffer.from(bytes))
  for (const name of ['datapackage.json', 'datapackage-digest.json']) all.delete(name)
  return { packaged: zipOf(withLists(all)), result }
}

t.test('replies in a package', { skip }, async (t) => {
  using made = new Certificates()
  made.issue('authority')
  const stamp = async (note: string) => made.reply(await made.query(note), 'authority')
  const timestamps = { open: () => openTimestampVerifier(made.root), isGiven: true }
  const honest = issuePackage(verdict)
  const head = issueCheckpoint(honest.chain)
  const before = issueCheckpoint(honest.chain.slice(0, 5))
  const byOther = issueCheckpoint(honest.chain, [issuerKey(9)])
  const [reply, ofBefore, ofOther, ofMore] = await Promise.all([head, before, byOther, `${head} `].map(stamp))
  if (!reply || !ofBefore || !ofOther || !ofMore) throw new Error('a reply is missing')

  const good = await replay(withReplies(honest, { '1.tsr': reply, '1.note': head }), { timestamps })
  t.same([good.ok, good.failed, good.steps.at(-1)?.state], [true, [], 'holds'])
  t.match(good.detail('timestamps'), /^the receipt of the manifest existed at 20.*Z, by .*Test authority/)

  const both = { '1.tsr': ofBefore, '1.note': before, '2.tsr': reply, '2.note': head }
  t.match(
    (await replay(withReplies(honest, both), { timestamps })).detail('timestamps'),
    /^the receipt of the manifest/,
  )

  const earlier = await replay(withReplies(honest, { '1.tsr': ofBefore, '1.note': before }), { timestamps })
  t.equal(earlier.ok, true)
  t.match(earlier.detail('timestamps'), /^the replies are about other heads of the log/)

  const unknown = { open: () => openTimestampVerifier(''), isGiven: false }
  const stranger = await replay(withReplies(honest, { '1.tsr': reply, '1.note': head }), { timestamps: unknown })
  t.equal(stranger.ok, true)
  t.match(stranger.detail('timestamps'), /^no trusted root leads to .*Test authority.* \(--timestamp-ca\)$/)

  const flipped = Buffer.from(reply)
  flipped[flipped.length - 20]! ^= 1
  const changes: [name: string, replies: Record<string, Buffer | string>, why: RegExp][] = [
    [
      'about other bytes',
      { '1.tsr': ofMore, '1.note': head },
      /^evidence\/timestamps\/1\.tsr: the token is about another/,
    ],
    ['changed', { '1.tsr': flipped, '1.note': head }, /^evidence\/timestamps\/1\.tsr: /],
    [
      'cut',
      { '1.tsr': reply.subarray(0, -1), '1.note': head },
      /^evidence\/timestamps\/1\.tsr: the reply is not one value/,
    ],
    ['of no note', { '1.tsr': reply }, /^evidence\/timestamps\/1\.note is missing$/],
    ['of what is no head', { '1.tsr': reply, '1.note': 'x' }, /^evidence\/timestamps\/1\.note is no checkpoint$/],
    [
      'of a head that the log did not sign',
      { '1.tsr': ofOther, '1.note': byOther },
      /1\.note is not signed by the pinned key$/,
    ],
    [
      'beside something else',
      { '1.tsr': reply, '1.note': head, 'a.txt': 'x' },
      /a\.txt is neither a reply nor a note$/,
    ],
    ['too long', { '1.tsr': Buffer.alloc(65_537), '1.note': head }, /1\.tsr is longer than 65536 bytes$/],
    [
      'too many',
      Object.fromEntries(
        Array.from({ length: 51 }, (_, i) => [[`${i}.tsr`, reply] as const, [`${i}.note`, head] as const]).flat(),
      ),
      /^there are more than 50 replies$/,
    ],
  ]
  for (const [name, replies, why] of changes) {
    const { failed, detail } = await replay(withReplies(honest, replies), { timestamps })
    t.same(failed, ['timestamps'], name)
    t.match(detail('timestamps'), why, name)
  }
})

t.test('a receipt that claims to be later than its stamp', { skip }, async (t) => {
  using made = new Certificates()
  made.issue('authority')
  const later = issuePackage(verdict, { capture: { ts_ms: Date.now() + 3_600_000 } })
  const head = issueCheckpoint(later.chain)
  const reply = await made.reply(await made.query(head), 'authority')
  const timestamps = { open: () => openTimestampVerifier(made.root), isGiven: true }
  const { failed, detail } = await replay(withReplies(later, { '1.tsr': reply, '1.note': head }), { timestamps })
  t.same(failed, ['timestamps'])
  t.match(detail('timestamps'), /^the receipt of the manifest says a later time than /)
})
