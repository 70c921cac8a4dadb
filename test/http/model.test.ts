// The weights as a stranger downloads them: listed, whole, named by their digest, and never held in memory as a whole.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inTurns } from '../../server/http/download-turns.ts'
import { settings } from '../../workers/assessment/local/weights.ts'
import { startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const digest = settings.weights_sha256
const at = (name: string) => system.url(`/model/${name}`)

t.test('the list names the weights in force', async (t) => {
  const answer = await fetch(at(''))
  t.equal(answer.headers.get('cache-control'), 'no-cache')
  const list = (await answer.json()) as {
    bytes: number
    methodology: string
    files: { url: string; sha256?: string }[]
  }
  t.match(list, { weights_sha256: digest, methodology: `${settings.methodology}+${digest.slice(0, 16)}` })
  t.same(
    list.files.map(({ url }) => url),
    [at(`${digest}.onnx`), at(`${digest}.json`)],
  )
  t.ok(list.bytes > 100e6)
})

t.test('the download is the file of the digest', async (t) => {
  const answer = await fetch(at(`${digest}.onnx`))
  t.match(answer.headers.get('cache-control'), /immutable/)
  const sum = createHash('sha256')
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    sum.update(chunk)
    bytes += chunk.length
  }
  t.equal(sum.digest('hex'), digest)
  t.equal(String(bytes), answer.headers.get('content-length'))
})

t.test('a caller who reads slowly makes the service hold little of it', async (t) => {
  const before = process.memoryUsage().arrayBuffers
  const answer = await fetch(at(`${digest}.onnx`))
  const reader = answer.body?.getReader()
  await reader?.read()
  const held = process.memoryUsage().arrayBuffers - before
  t.ok(held < Number(answer.headers.get('content-length')) / 4, `${held} bytes in buffers`)
  await reader?.cancel()
})

const FILES = '/proc/self/fd'

t.test('callers who do not read hold no file open', { skip: !existsSync(FILES) && `no ${FILES}` }, async (t) => {
  const isOfWeights = (file: string) => {
    try {
      return readlinkSync(join(FILES, file)).includes('model.onnx.part')
    } catch {
      return false
    }
  }
  const answers = await Promise.all(Array.from({ length: 12 }, () => fetch(at(`${digest}.onnx`))))
  const readers = answers.map(({ body }) => body?.getReader())
  for (const reader of readers) await reader?.read()
  const held = readdirSync(FILES).filter(isOfWeights)
  t.ok(held.length <= 3, `${held.length} files are open`)
  for (const reader of readers) await reader?.cancel()
})

t.test('many downloads at once send one piece in each turn of the event loop', async (t) => {
  async function* pieces() {
    for (let n = 0; n < 5; n++) yield n
  }
  let sent = 0
  let most = 0
  let before = 0
  let isWatching = true
  const watch = () => {
    most = Math.max(most, sent - before)
    before = sent
    if (isWatching) setImmediate(watch)
  }
  watch()
  const download = async () => {
    for await (const _ of inTurns(pieces())) sent++
  }
  await Promise.all(Array.from({ length: 20 }, download))
  isWatching = false
  t.equal(sent, 100)
  t.equal(most, 1)
})

t.test('HEAD, and a caller who has the file, get no body', async (t) => {
  const head = await fetch(at(`${digest}.onnx`), { method: 'HEAD' })
  t.ok(Number(head.headers.get('content-length')) > 100e6)
  const etag = head.headers.get('etag') ?? ''
  t.match(etag, digest)
  t.equal((await fetch(at(`${digest}.onnx`), { headers: { 'if-none-match': etag } })).status, 304)
})

t.test('tokenizer and settings are one document', async (t) => {
  const answer = await fetch(at(`${digest}.json`))
  t.match(answer.headers.get('cache-control'), /immutable/)
  const { tokenizer, settings: served } = (await answer.json()) as { tokenizer: object; settings: object }
  t.same(served, settings)
  t.match(tokenizer, { model: { type: 'WordPiece' } })
})

t.test('other digests and names are not there', async (t) => {
  for (const name of [`${'0'.repeat(64)}.onnx`, digest, `${digest}.ONNX`, 'config.json'])
    t.equal((await fetch(at(name))).status, 404, name)
})

t.test('what agents and people read links the list', async (t) => {
  for (const path of ['/llms.txt', '/accuracy', '/api/agent/v1/capabilities'])
    t.match(await (await fetch(system.url(path))).text(), '/model/', path)
})
