// Replies of time-stamp authorities: what openssl makes and accepts, the client accepts too, and each fault has its name.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { MAX_REPLY_BYTES, verifyTimestamp } from '../../client/timestamp.ts'
import { Certificates, RSA, response, STAMPS, withoutOpenssl } from '../time-stamp-authority.ts'

const DATA = Buffer.from('log.test\n7\nroot\n')

/** What `openssl ts -verify` says of a reply. */
async function accepted(certificates: Certificates, reply: Buffer, data: Buffer = DATA): Promise<boolean> {
  const files = ['reply', 'data'].map((name) => certificates.path(`checked.${name}`))
  writeFileSync(files[0]!, reply)
  writeFileSync(files[1]!, data)
  const call = ['ts', '-verify', '-in', files[0]!, '-data', files[1]!, '-CAfile', certificates.path('root.pem')]
  return promisify(execFile)('openssl', call).then(
    () => true,
    () => false,
  )
}

t.test('verifies what openssl verifies', { skip: withoutOpenssl }, async (t) => {
  using made = new Certificates()
  made.issue('plain')
  made.issue('rsa', {}, RSA)
  made.issueIssuer('middle', {
    extensions: 'basicConstraints=critical,CA:true,pathlen:0\nkeyUsage=critical,keyCertSign\n',
  })
  made.issue('under', { by: 'middle' })
  const query = await made.query(DATA)
  const nonce = Buffer.from(query.subarray(-11, -3)) // It ends with certReq true, three bytes.
  for (const [name, chain] of [
    ['plain', []],
    ['rsa', ['root']],
    ['under', ['middle']],
  ] as const) {
    const reply = await made.reply(query, name, chain)
    t.ok(await accepted(made, reply), `openssl: ${name}`)
    const verdict = await verifyTimestamp(reply, DATA, made.root)
    t.match(verdict, { ok: true, stamp: { authority: `Test ${name}`, serial: '01' } }, name)
    t.match(verdict.stamp?.time, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/)
  }
  const again = await made.reply(query, 'plain')
  t.match(await verifyTimestamp(again, DATA, made.root), { ok: true, stamp: { serial: '02' } })
  t.match(await verifyTimestamp(again, DATA, made.root, { nonce }), { ok: true })
  const other = await made.reply(await made.query(DATA), 'plain')
  t.match(await verifyTimestamp(other, DATA, made.root, { nonce }), { problem: /another nonce/ })
  const old = await made.reply(await made.query(DATA, '-no_nonce'), 'plain')
  t.match(await verifyTimestamp(old, DATA, made.root), { ok: true })
  t.match(await verifyTimestamp(old, DATA, made.root, { nonce }), { problem: /has no nonce/ })
})

t.test('names what is wrong with a certificate, as openssl refuses it', { skip: withoutOpenssl }, async (t) => {
  using made = new Certificates()
  made.issue('good')
  made.issue('expired', { days: -1 })
  made.issue('server', { extensions: 'extendedKeyUsage=critical,serverAuth\n' })
  made.issue('both', { extensions: 'extendedKeyUsage=critical,timeStamping,serverAuth\n' })
  made.issue('optional', { extensions: 'extendedKeyUsage=timeStamping\n' })
  made.issue('no-purpose', { extensions: 'basicConstraints=critical,CA:false\n' })
  made.issue('key-usage', { extensions: STAMPS.replace('digitalSignature', 'keyAgreement') })
  made.issue('below-good', { by: 'good' })
  made.issueIssuer('late', { days: -1 })
  made.issue('below-late', { by: 'late' })
  made.issueIssuer('short', {
    extensions: 'basicConstraints=critical,CA:true,pathlen:0\nkeyUsage=critical,keyCertSign\n',
  })
  made.issueIssuer('long', { by: 'short' })
  made.issue('below-long', { by: 'long' })
  made.issueIssuer('named', {
    extensions: 'basicConstraints=critical,CA:true\nnameConstraints=critical,permitted;DNS:a.test\n',
  })
  made.issue('below-named', { by: 'named' })
  const query = await made.query(DATA)
  const good = await made.reply(query, 'good')
  const cases: [string, RegExp, Buffer][] = [
    ['expired', /had expired at 20.*: it ended 20/, await made.reply(query, 'expired')],
    ['wrong purpose', /is not for time stamping alone/, await made.forge(good, 'server')],
    ['two purposes', /is not for time stamping alone/, await made.forge(good, 'both')],
    ['not critical', /is not for time stamping alone/, await made.forge(good, 'optional')],
    ['no purpose', /is not for time stamping alone/, await made.forge(good, 'no-purpose')],
    ['key usage', /is not for signatures/, await made.forge(good, 'key-usage')],
    ['issued by no issuer', /Test good is not that of an issuer/, await made.reply(query, 'below-good', ['good'])],
    ['issuer expired', /Test late had expired/, await made.reply(query, 'below-late', ['late'])],
    [
      'path too long',
      /Test short allows 0 authorities below it, not 1/,
      await made.reply(query, 'below-long', ['long', 'short']),
    ],
    ['constraint', /critical extension 2\.5\.29\.30/, await made.reply(query, 'below-named', ['named'])],
    ['no link', /no trusted root leads to .*, which Test late issued/, await made.reply(query, 'below-late')],
  ]
  for (const [name, problem, reply] of cases) {
    const verdict = await verifyTimestamp(reply, DATA, made.root)
    t.match(verdict, { ok: false, problem, isUntrusted: name === 'no link' }, name)
    // openssl permits what names the constraint does not concern.
    if (name !== 'constraint') t.notOk(await accepted(made, reply), `openssl: ${name}`)
  }
  using other = new Certificates()
  const unknown = await verifyTimestamp(good, DATA, other.root)
  t.match(unknown, { ok: false, isUntrusted: true, stamp: { authority: 'Test good' } })
  t.match(await verifyTimestamp(good, DATA, 'no certificate'), { ok: false, isUntrusted: true })
  // Authorities that have issued each other lead nowhere, and not without end.
  made.issueIssuer('one')
  made.issueIssuer('two', { by: 'one' })
  made.issue('below-one', { by: 'one' })
  made.issueIssuer('one', { by: 'two' })
  const circle = await made.reply(query, 'below-one', ['one', 'two'])
  t.match(await verifyTimestamp(circle, DATA, made.root), { ok: false, isUntrusted: true })
})

t.test('refuses tokens that an honest authority does not make', { skip: withoutOpenssl }, async (t) => {
  using made = new Certificates()
  made.issue('good')
  const query = await made.query(DATA)
  const good = await made.reply(query, 'good')
  t.match(await verifyTimestamp(await made.forge(good, 'good'), DATA, made.root), { ok: true })
  const token = good.subarray(4 + 5)
  const signatureAt = good.length - 5
  const infoAt = good.indexOf('0401', 'hex') + 20
  const changed = (at: number): Buffer => Buffer.from(good).fill(good[at]! ^ 1, at, at + 1)
  const cases: [string, RegExp, Buffer, Buffer?][] = [
    ['other data', /about another digest/, good, Buffer.from('other')],
    [
      'another digest function',
      /digest that is not SHA-256/,
      await made.reply(await made.query(DATA, '-sha512', '-digest', '00'.repeat(64)), 'good'),
    ],
    ['no attributes', /no signed attributes/, await made.forge(good, 'good', '-noattr')],
    ['no name of the certificate', /names another certificate/, await made.forge(good, 'good', '-noverify')],
    ['signature', /signature of the token is wrong/, changed(signatureAt)],
    ['statement', /./, changed(infoAt)],
    ['refusal', /the authority refused \(status 2/, await made.reply(Buffer.from('no query'), 'good')],
    ['status without a token', /no signed token/, Buffer.from('30053003020100', 'hex')],
    ['not a token', /no signed token|cannot be read/, response(Buffer.from('3003020101', 'hex'))],
    ['more bytes', /not one value in DER/, Buffer.concat([good, Buffer.of(0)])],
    ['fewer bytes', /not one value in DER/, good.subarray(0, -1)],
    ['the token alone', /./, token],
    ['nothing', /not one value in DER/, Buffer.alloc(0)],
    ['text', /not one value in DER/, Buffer.from('<html>')],
    ['too long', /is longer than 65536 bytes/, Buffer.alloc(MAX_REPLY_BYTES + 1, 0x30)],
  ]
  for (const [name, problem, reply, other] of cases) {
    const data = other ?? DATA
    const verdict = await verifyTimestamp(reply, data, made.root)
    t.match(verdict, { ok: false, problem, isUntrusted: false, stamp: null }, name)
    // openssl reads no further than the reply.
    if (name !== 'more bytes') t.notOk(await accepted(made, reply, data), `openssl: ${name}`)
  }
})
