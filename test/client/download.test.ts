// An export that is fetched, interrupted, changed on disk, and continued.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { BrokenChainError, download, type ExportFile } from '../../client/chain/download.ts'
import { Countersign } from '../../client/client.ts'
import { CountersignError } from '../../client/error.ts'
import { type Attestation, verifyExport } from '../../client/verification.ts'
import { BARE_ENV } from '../children.ts'
import { buildClock } from './counterpart.ts'
import { issueCheckpoint, issueExport, issueLog, VKEY } from './log-issuer.ts'
import { openLogServer, type Shown } from './log-server.ts'

const { chain, keys } = issueLog([5, 5], ['caf\u00e9 \u{1F600}', null])
const pins = [{ key_id: keys[0]!.key_id, pubkey_hex: keys[0]!.pubkey_hex }]
const whole = issueExport(chain)

function openFile(content: string | Uint8Array = '') {
  let bytes = Buffer.from(content)
  const file: ExportFile = {
    async *read() {
      if (bytes.length > 0) yield bytes
    },
    async truncate(length) {
      bytes = bytes.subarray(0, length)
    },
    async append(text) {
      bytes = Buffer.concat([bytes, Buffer.from(text)])
    },
  }
  return { ...file, bytes: () => bytes, text: () => bytes.toString() }
}

async function serve(t: Parameters<typeof openLogServer>[0], shown: Shown = { chain }) {
  const { baseUrl } = await openLogServer(t, shown)
  const clock = buildClock()
  return { service: new Countersign({ baseUrl, clock }), clock }
}

t.test('a whole chain', async (t) => {
  const { service } = await serve(t)
  const file = openFile()
  const { serial, receipt_hash } = chain.at(-1)!
  t.same(await download(service, file), { serial, receipt_hash })
  t.equal(file.text(), whole)
  t.equal((await verifyExport(file.read(), { keys: pins, vkey: VKEY })).ok, true)
})

t.test('a pipe is written, and not read: nothing can be continued there', async (t) => {
  const { baseUrl } = await openLogServer(t, { chain })
  const words = [process.execPath, join(import.meta.dirname, '../../client/cli.ts'), 'export', baseUrl, '/dev/stdout']
  const child = spawn('sh', ['-c', '"$0" "$@" | cat', ...words], { env: BARE_ENV })
  const { serial, receipt_hash } = chain.at(-1)!
  t.equal(await text(child.stdout), `${whole}${serial}:${receipt_hash}\n`)
})

t.test('a download continues wherever it was cut off, also in the middle of a character', async (t) => {
  const { service } = await serve(t)
  const bytes = Buffer.from(whole)
  const inside = bytes.indexOf('\u00e9') + 1
  const lineEnd = bytes.indexOf('\n', 2000)
  const dash = bytes.indexOf('\u2014') + 1
  for (const size of [0, 1, 10, dash, dash + 1, inside, inside + 4, lineEnd, lineEnd + 1, bytes.length]) {
    const file = openFile(bytes.subarray(0, size))
    await download(service, file)
    t.equal(file.text(), whole, `cut off at ${size}`)
  }
})

t.test('a file that was changed since is not continued, and stays unchanged', async (t) => {
  const { service } = await serve(t)
  const lines = whole.split('\n').slice(0, 6)
  const edit = (at: number, change: (line: string) => string) => lines.with(at, change(lines[at]!))
  const swap = (members: object) => (line: string) => JSON.stringify({ ...JSON.parse(line), ...members })
  const changes: [why: string, string[]][] = [
    ['a field of a receipt', edit(3, swap({ label: 'another' }))],
    ['a field of the last receipt', edit(5, swap({ subject_sha256: '0'.repeat(64) }))],
    ['a link', edit(3, swap({ prev_hash: '0'.repeat(64) }))],
    ['a hash', edit(3, swap({ receipt_hash: '0'.repeat(64) }))],
    ['a receipt gone', lines.toSpliced(3, 1)],
    ['a receipt twice', lines.toSpliced(3, 0, lines[3]!)],
    ['no receipt', edit(5, () => 'null')],
    ['an empty one', edit(5, () => '{}')],
    ['a lone surrogate', edit(3, (line) => line.replace(/"label":[^,]+/, '"label":"\\ud800"'))],
    ['a member twice', edit(3, (line) => line.replace('{', '{"v":1,'))],
    ['another spelling', edit(3, (line) => line.replace('{', '{ '))],
    [
      'another order',
      edit(3, (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()))),
    ],
    ['a header of another form', edit(0, (line) => line.replace('}', ',"more":1}'))],
    ['nesting without end', edit(5, () => `${'['.repeat(20_000)}${']'.repeat(20_000)}`)],
    ['a line without end', [...lines, 'x'.repeat(100_000)]],
  ]
  for (const [why, changed] of changes) {
    const content = `${changed.join('\n')}\n`
    const file = openFile(content)
    const error = await download(service, file).catch((error) => error)
    t.ok(error instanceof BrokenChainError || error instanceof SyntaxError, `${why}: ${error}`)
    t.equal(file.text(), content, why)
  }
})

t.test('a file of another history, or one that goes beyond its head, is not continued', async (t) => {
  const other = issueLog([9], ['another history']).chain
  const { service } = await serve(t)
  const head = `${whole.split('\n')[0]}\n`
  const file = (receipts: Attestation[]) => openFile(head + receipts.map((one) => `${JSON.stringify(one)}\n`).join(''))
  await t.rejects(download(service, file(other.slice(0, 3))), { name: 'BrokenChainError' })
  const short = issueExport(chain.slice(0, 4)).split('\n')[0]
  const beyond = openFile(whole.replace(/^.*/, () => short!))
  await t.rejects(download(service, beyond), { name: 'BrokenChainError', message: /does not lead to the pinned head/ })
})

t.test('the responses of the service must be consistent with each other', async (t) => {
  const at = (serial: number, change: object) =>
    chain.with(serial - 1, { ...chain[serial - 1]!, ...change }) as Attestation[]
  const answers: [RegExp, Shown['answers']][] = [
    [/10 receipts came for 1 to 11/, { '/v1/chain': { attestations: chain.slice(1) } }],
    [/no attestation/, { '/v1/chain': { attestations: chain.with(2, null as never) } }],
    [/Serial 3: receipt_hash is not/, { '/v1/chain': { attestations: at(3, { label: 'x' }) } }],
    [/Serial 3 does not continue/, { '/v1/chain': { attestations: at(3, { prev_hash: '0'.repeat(64) }) } }],
    [/not well-formed/, { '/v1/chain': { attestations: at(3, { label: '\ud800' }) } }],
  ]
  const { serial, receipt_hash } = chain.at(-1)!
  for (const [message, answered] of answers) {
    const { service } = await serve(t, { chain, answers: answered })
    // The head is given: `/v1/chain-head` is not asked, whose path begins in the same way.
    const error = await download(service, openFile(), { head: { serial, receipt_hash } }).catch((error) => error)
    t.match(error, { name: 'BrokenChainError', message })
  }
  const { service } = await serve(t)
  await t.rejects(
    download(service, openFile(), { head: { serial: 11, receipt_hash: 'f'.repeat(64) } }),
    BrokenChainError,
  )
  await t.rejects(download(service, openFile(), { head: { serial: 0, receipt_hash: '0'.repeat(64) } }), SyntaxError)
})

t.test('an empty log, and a service that does not answer', async (t) => {
  const empty = await serve(t, { chain: [] })
  await t.rejects(download(empty.service, openFile()), { name: 'BrokenChainError', message: /no receipts yet/ })
  const { service, clock } = await serve(t, { chain, refuse: { '/v1/chain': 503 } })
  const { serial, receipt_hash } = chain.at(-1)!
  const file = openFile()
  const head = { serial, receipt_hash }
  await t.rejects(download(service, file, { head, clock }), CountersignError)
  t.same(clock.waits, [1000, 2000, 4000, 8000, 16_000])
  const back = await serve(t)
  await download(back.service, file, { head })
  t.equal(file.text(), issueExport(chain, null), 'an export up to a given head has no checkpoint')
  t.equal(issueCheckpoint(chain), JSON.parse(whole.split('\n')[0]!).checkpoint)
})
