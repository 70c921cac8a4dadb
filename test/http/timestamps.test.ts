// Replies of time-stamp authorities as the whole service asks for them and serves them: `openssl ts -verify` accepts what is served.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { runDoctor } from '../../server/doctor.ts'
import { openTimestamping } from '../../server/receipts/timestamping.ts'
import { countersign } from '../client/command-line.ts'
import { startSystem } from '../system.ts'
import { Certificates, openAuthority, withoutOpenssl } from '../time-stamp-authority.ts'
import { until } from '../until.ts'

t.test(
  'the service asks by itself, serves the newest reply, and doctor asks too',
  { skip: withoutOpenssl },
  async (t) => {
    using certificates = new Certificates()
    certificates.issue('one')
    certificates.issue('two')
    certificates.issue('expired', { days: -1 })
    await using one = await openAuthority(certificates, 'one')
    await using two = await openAuthority(certificates, 'two')
    await using expired = await openAuthority(certificates, 'expired')
    const closed = await openAuthority(certificates, 'closed')
    await closed[Symbol.asyncDispose]()
    const env = {
      TIMESTAMP_URLS: `${one.url}, ${two.url}`,
      TIMESTAMP_CA_FILE: certificates.path('root.pem'),
    }
    await using system = await startSystem({ env })
    const { chain } = system.service.api
    t.equal((await fetch(system.url('/checkpoint/timestamp'))).status, 404)
    const stamping = openTimestamping(
      {
        ...system.service.api,
        config: { ...system.service.api.config, timestamps: system.service.api.config.timestamps! },
      },
      { lookS: 0 },
    )
    t.teardown(() => stamping[Symbol.asyncDispose]())
    for (const n of [1, 2, 3])
      await chain.append({ subjectSha256: `${n}`.repeat(64), label: null, requestedBy: 'tester' })
    t.equal(await stamping.runOnce(), 2)
    await chain.append({ subjectSha256: '9'.repeat(64), label: null, requestedBy: 'tester' })

    const answer = await fetch(system.url('/checkpoint/timestamp'))
    t.equal(answer.headers.get('content-type'), 'application/timestamp-reply')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    const note = Buffer.from(answer.headers.get('x-checkpoint')!, 'base64')
    t.match(note.toString(), /^countersign\/log\n3\n/)
    const folder = t.testdir({})
    const [noteFile, replyFile] = [join(folder, 'note'), join(folder, 'reply.tsr')]
    writeFileSync(noteFile, note)
    writeFileSync(replyFile, Buffer.from(await answer.arrayBuffer()))
    const call = ['ts', '-verify', '-in', replyFile, '-data', noteFile, '-CAfile', certificates.path('root.pem')]
    t.match(await promisify(execFile)('openssl', call), { stdout: /Verification: OK/ })

    const listed = await fetch(system.url('/checkpoint/timestamps?from=2'))
    t.equal(listed.headers.get('content-type'), 'application/jsonl; charset=utf-8')
    const lines = (await listed.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    t.equal(lines.length, 2)
    t.ok(lines.some(({ reply_base64 }) => Buffer.from(reply_base64, 'base64').equals(readFileSync(replyFile))))
    t.equal(lines[0].note, note.toString())
    t.equal(await (await fetch(system.url('/checkpoint/timestamps?from=4'))).text(), '')
    for (const from of ['0', 'x', '9'.repeat(16)])
      t.equal((await fetch(system.url(`/checkpoint/timestamps?from=${from}`))).status, 400, from)

    const page = await (await fetch(system.url('/chain'), { headers: { accept: 'text/html' } })).text()
    t.match(
      page.replace(/<[^>]+>/g, '').replace(/\s+/g, ' '),
      /Test (one|two), which is not part of it, has signed that the first 3 receipts existed on /,
    )

    const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as {
      keys: { key_id: number; use: string; pubkey_hex: string }[]
    }
    const { key_id, pubkey_hex } = keys.find(({ use }) => use === 'receipt')!
    const exported = join(folder, 'chain.jsonl')
    const kept = await countersign(['export', system.service.address, exported, '--json'])
    t.match(JSON.parse(String(kept.stdout)), { serial: 4, timestamps: 2 })
    t.equal(readFileSync(`${exported}.timestamps`, 'utf8'), `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`)
    const trusting = ['--pin', `${key_id}:${pubkey_hex}`, '--timestamp-ca', certificates.path('root.pem')]
    t.match(await countersign(['verify', exported, ...trusting]), {
      code: 0,
      stdout: /ok {3}timestamps: The chain up to 3 existed at 20\S+Z, by Test (one|two); 1 other /,
    })

    const config = readConfig({
      ...env,
      TIMESTAMP_URLS: `${one.url},${expired.url},${closed.url}`,
      DATABASE_URL: system.databaseUrl,
    })
    const found = (await runDoctor(config, { shell: true })).filter(({ subject }) => subject === 'timestamps')
    t.match(found, [
      { ok: true, detail: /\/one answers: 20.*Z, by Test one$/ },
      { ok: false, detail: /\/expired: the certificate of the authority had expired/, cure: /TIMESTAMP_URLS/ },
      { ok: false, detail: /\/closed: .*ECONNREFUSED/ },
    ])
    const untrusting = readConfig({ TIMESTAMP_URLS: env.TIMESTAMP_URLS, DATABASE_URL: system.databaseUrl })
    t.match(
      (await runDoctor(untrusting, { shell: true })).filter(({ subject }) => subject === 'timestamps'),
      [{ detail: /no trusted root leads to .*Test root issued/ }, {}],
    )
  },
)

t.test('a worker of the service asks without being told', { skip: withoutOpenssl }, async (t) => {
  using certificates = new Certificates()
  certificates.issue('one')
  await using one = await openAuthority(certificates, 'one')
  const ca = certificates.path('root.pem')
  await using system = await startSystem()
  await system.service.api.chain.append({ subjectSha256: 'a'.repeat(64), label: null, requestedBy: 'tester' })
  const twin = await system.openTwin(undefined, { TIMESTAMP_URLS: one.url, TIMESTAMP_CA_FILE: ca })
  await until(async () => (await fetch(new URL('/checkpoint/timestamp', twin.address))).status === 200)
  t.equal(one.asked.length, 1)
  await twin[Symbol.asyncDispose]()
})
