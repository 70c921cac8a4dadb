// What holds for the arguments of every command: what is wrong with one is found before the service is asked, is named, and ends with 2.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { countersign } from './command-line.ts'
import { argumentsOf, CALLS, type Call, COMMANDS, makeFiles } from './every-command.ts'

const folder = await makeFiles(t)
let asked = 0
const server = createServer((_request, response) => {
  asked += 1
  response.writeHead(503).end()
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close())
const service = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function refused(call: Pick<Call, 'args'>, more: string[] = []) {
  asked = 0
  const ran = await countersign([...argumentsOf(call, service, folder), ...more])
  const asJson = await countersign([...argumentsOf(call, service, folder), ...more, '--json'])
  return { ...ran, asJson }
}

/** These are made where they are not there. */
const MADE = new Set(['@/journal', '@/out'])
const MADE_BY_OPTION = new Set(['--journal', '--verdicts', '--weights'])
/** Needs another option, and says so. */
const NEEDS_ANOTHER = new Set(['--timestamp-ca', '--verdicts', '--weights', '--budget-file', '--wallet'])

t.test('a file that cannot be used', async (t) => {
  const missing = join(folder, 'none/x')
  for (const call of CALLS)
    for (const [i, word] of call.args.entries()) {
      if (!word.startsWith('@/')) continue
      const bad = MADE.has(word) ? ['', join(folder, 'empty')] : ['', join(folder, 'folder'), missing]
      for (const value of bad) {
        const { code, stdout, stderr, asJson } = await refused({ args: call.args.with(i, value) })
        const name = `${call.name} ${word}: ${value}`
        t.same([code, stdout, asked], [2, '', 0], `${name}\n${stderr}`)
        t.ok(stderr.includes(value === '' ? 'is empty' : value), `${name}\n${stderr}`)
        t.notMatch(stderr, /chmod/, name)
        if (call.name !== 'mcp') t.equal(JSON.parse(asJson.stderr).error.code, 'wrong_usage', name)
      }
    }
})

t.test('a file of an option', async (t) => {
  for (const call of CALLS)
    for (const [option, { value = '' }] of Object.entries(COMMANDS.get(call.name)?.options ?? {})) {
      if (!/FILE|DIR/.test(value) || call.args.includes(`--${option}`)) continue
      const name = `${call.name} --${option}`
      const empty = await refused(call, [`--${option}`, ''])
      t.same([empty.code, empty.stdout, asked], [2, '', 0], `${name}\n${empty.stderr}`)
      t.match(empty.stderr, `--${option}: The name of a file or folder is empty.`)
      if (NEEDS_ANOTHER.has(`--${option}`)) continue
      for (const bad of [
        join(folder, MADE_BY_OPTION.has(`--${option}`) ? 'empty' : 'folder'),
        join(folder, 'empty/x'),
      ]) {
        const { code, stdout, stderr } = await refused(call, [`--${option}`, bad])
        t.same([code, stdout, asked], [2, '', 0], `${name} ${bad}\n${stderr}`)
        t.ok(stderr.includes(bad), `${name}\n${stderr}`)
      }
    }
})

t.test('an address that is none', async (t) => {
  for (const call of CALLS)
    for (const [i, word] of call.args.entries()) {
      if (word !== '{service}') continue
      for (const value of ['', 'service.example', 'ftp://service.example/']) {
        const { code, stdout, stderr } = await refused({ args: call.args.with(i, value) })
        t.same([code, stdout, asked], [2, '', 0], `${call.name} ${value}\n${stderr}`)
        t.ok(stderr.includes(value === '' ? 'is empty' : value), `${call.name} ${value}\n${stderr}`)
      }
    }
})

t.test('a misspelt option, a missing word, and one too many', async (t) => {
  for (const call of CALLS) {
    const misspelt = await refused(call, ['--hepl'])
    t.same([misspelt.code, misspelt.stdout, asked], [2, '', 0], call.name)
    t.match(misspelt.stderr, /^countersign: Unknown option '--hepl'\. Did you mean --help\?\n/, call.name)
    const unknown = await refused(call, ['--frobnicate'])
    t.match(unknown, { code: 2, stderr: `Unknown option '--frobnicate'. countersign ${call.name} has --` }, call.name)
    const { operands } = COMMANDS.get(call.name)!
    const [first] = operands
    if (first && !first.startsWith('['))
      t.match(await refused({ args: call.name.split(' ') }), {
        code: 2,
        stderr: `${first} is missing. It is: countersign ${call.name}`,
      })
    if (operands.at(-1)?.endsWith('...]')) continue
    const words = [...operands.map(() => 'x'), 'surplus']
    t.match(
      await refused({ args: [...call.name.split(' '), ...words] }),
      { code: 2, stderr: /"surplus" is one word too many\. It is: / },
      call.name,
    )
  }
  t.match(await countersign(['verfy', 'x']), { code: 2, stderr: /no command verfy\. Did you mean verify\?/ })
  t.match(await countersign(['lease', 'revok', 'x']), { code: 2, stderr: /no command revok\. Did you mean revoke\?/ })
  t.notMatch((await countersign(['notarise', 'x'])).stderr, /Did you mean/)
})
