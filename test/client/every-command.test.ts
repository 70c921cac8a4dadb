// What holds for every command: it says what it waits for, and which service could not be reached and why.
import { once } from 'node:events'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { ANSWERS } from '../../client/commands/answers.ts'
import { catalog } from '../../server/catalog.ts'
import { until } from '../until.ts'
import { countersign } from './command-line.ts'
import { argumentsOf, CALLS, COMMANDS, makeFiles } from './every-command.ts'
import { ownTime } from './own-time.ts'

t.test('the table has every command', async (t) => {
  t.same(CALLS.map(({ name }) => name).sort(), [...COMMANDS.keys()].sort())
})

t.test('every client of a command is opened where it is said what is waited for', async (t) => {
  const root = join(import.meta.dirname, '../../client/commands')
  const files = globSync('**/*.ts', { cwd: root }).filter((file) => file !== 'patience.ts')
  t.ok(files.length > 50)
  t.same(
    files.filter((file) => readFileSync(join(root, file), 'utf8').includes('new Countersign(')),
    [],
  )
})

const asking = CALLS.filter(({ asks }) => asks)

async function serve(t: Test, answer: (response: ServerResponse) => void): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    request.resume()
    answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

t.test('a service that does not answer: the command says that it waits, and for whom', async (t) => {
  const folder = await makeFiles(t)
  for (const call of asking)
    await t.test(call.name, async (t) => {
      const pass = ownTime(t)
      const { url } = await serve(t, (response) => {
        pass(5000)
        response.writeHead(404, { 'content-type': 'text/html' }).end('<html>')
      })
      const ran = await countersign(argumentsOf(call, url, folder))
      t.match(ran.stderr, new RegExp(`Waiting for ${url}`))
      t.not(ran.code, 0)
    })
})

t.test('a service whose answer does not end: the same is said while the rest is waited for', async (t) => {
  const folder = await makeFiles(t)
  for (const call of asking)
    await t.test(call.name, async (t) => {
      const pass = ownTime(t)
      const { url } = await serve(t, async (response) => {
        const before = pass.begun()
        response.writeHead(404, { 'content-type': 'text/html' }).write('<')
        await until(() => pass.begun() > before)
        pass(5000)
        response.end('html>')
      })
      const ran = await countersign(argumentsOf(call, url, folder))
      t.match(ran.stderr, new RegExp(`Waiting for ${url}`))
      t.not(ran.code, 0)
    })
})

const AGAIN: Record<string, [answer: (response: ServerResponse) => void, why: string]> = {
  'status 500': [
    (response) => response.writeHead(500, { 'content-type': 'text/html' }).end('<p>'),
    'answered with status 500.',
  ],
  'an answer that breaks off': [
    (response) => response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
    'could not be reached: the connection broke.',
  ],
}
for (const [about, [answer, why]] of Object.entries(AGAIN))
  t.test(`a command that asks again says so, and why: ${about}`, async (t) => {
    const folder = await makeFiles(t)
    for (const call of asking.filter(({ name }) => ['ask', 'recover', 'check'].includes(name)))
      await t.test(call.name, async (t) => {
        const pass = ownTime(t)
        const { setTimeout: begin } = globalThis
        // The pauses between two tries end at once.
        t.intercept(globalThis, 'setTimeout', {
          value: (work: () => void, ms = 0, ...rest: []) => {
            const isPause = ms >= 1000 && ms <= 16_000
            if (isPause) pass(16_000)
            return begin(work, isPause ? 0 : ms, ...rest)
          },
        })
        const { url } = await serve(t, answer)
        const ran = await countersign(argumentsOf(call, url, folder))
        t.equal(ran.code, 1)
        t.match(ran.stderr, `${url} ${why} It is asked again.\n`)
        t.notMatch(ran.stderr, /asks to wait/)
      })
  })

t.test(
  'another program answers: the message names the address, nothing is printed, and the status is not 0',
  async (t) => {
    const folder = await makeFiles(t)
    const html = ['text/html', '<p>'] as const
    const object = ['application/json', '{"a":1}'] as const
    const nothing = ['application/json', 'null'] as const
    for (const [status, [type, body]] of [
      [200, html],
      [404, html],
      [200, object],
      [200, nothing],
    ] as const)
      for (const call of asking)
        await t.test(`${call.name}: ${status} ${body}`, async (t) => {
          const { url } = await serve(t, (response) => response.writeHead(status, { 'content-type': type }).end(body))
          const ran = await countersign(argumentsOf(call, url, folder))
          t.not(ran.code, 0)
          t.ok(ran.stderr.includes(url), ran.stderr)
          t.equal(ran.stdout, '')
          t.notMatch(ran.stderr, UNREADABLE)
          t.same(
            readdirSync(folder).filter((name) => name.startsWith('new')),
            [],
            'no file is left of what failed',
          )
        })
  },
)

t.test('what commands need of an answer is what the service promises', async (t) => {
  for (const { name, output } of catalog) {
    const method = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
    if (!Object.hasOwn(ANSWERS, method)) continue
    const members = ANSWERS[method as keyof typeof ANSWERS]
    if (members === null) continue
    const { required = [], properties = {} } = z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' })
    for (const member of members.split(' ')) {
      const [, word = '', kind = ''] = /^(\w+)(\W*)$/.exec(member) ?? []
      t.ok(required.includes(word), `${name}: ${word}`)
      const { type } = properties[word] as { type?: string }
      t.equal(kind, type === 'array' ? '[]' : type === 'object' ? '{}' : '', `${name}: ${word}`)
    }
  }
})

/** What only the author of the program can read. */
const UNREADABLE = /\\u\{|Cannot (read|destructure|convert)|is not iterable|\bat .+:\d+:\d+/
