// The exit statuses: each that the help of a command promises is provoked, and the guide has each that the program uses.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { EXIT_STATUSES } from '../../client/commands/command.ts'
import { LEVELS } from '../../client/report/judgement.ts'
import { BARE_ENV } from '../children.ts'
import { countersign } from './command-line.ts'
import { argumentsOf, CALLS, COMMANDS, makeFiles } from './every-command.ts'
import { issueResult, KEY_ID, pubkeyHex } from './issuer.ts'
import { type Lie, listen, openLiar, PAGE, PIN, RECOVERY_TOKEN, refusal, signedByStranger, truth } from './liar.ts'
import { issueLog, VKEY } from './log-issuer.ts'
import { openLogServer } from './log-server.ts'
import { issuePackage } from './package-issuer.ts'
import { verdict } from './replayed.ts'

const ROOT = join(import.meta.dirname, '../..')
const folder = await makeFiles(t)
const file = (name: string) => join(folder, name)
const { liar, path } = await openLiar(t)
const log = await openLogServer(t, { chain: issueLog([2]).chain })

const put = (name: string, contents: string | Uint8Array) => {
  writeFileSync(file(name), contents)
  return file(name)
}
symlinkSync('/dev/full', file('full'))
const good = put('good.json', JSON.stringify(issueResult()))
const bad = put('bad.json', JSON.stringify({ ...issueResult(), claim: 'another' }))
const { packaged, result } = issuePackage({ ...verdict, methodology_version: 'retrieval-1 literal-11+gate-4' })
const forged = issuePackage(verdict, { records: (all) => (all[4]!.block = all[4]!.block.subarray(0, -1)) })
const whole = [put('whole.wacz', packaged), put('whole.json', JSON.stringify(result))]
const broken = [put('broken.wacz', forged.packaged), put('broken.json', JSON.stringify(forged.result))]
const ahead = { vkey: VKEY, serial: 9, receipt_hash: 'a'.repeat(64), root_hash: 'a'.repeat(64), checkpoint: '' }
const report = put('cited.md', `Ships find [three piers](${PAGE}) there.\n`)
const plain = put('plain.md', 'Nothing is cited here.\n')
const quoted = put('quoted.md', `It says ["no such words"](${PAGE}).\n`)
const one = put('one.csv', `source_url,claim\n${PAGE},one\n`)
const two = put('two.csv', `source_url,claim\n${PAGE},one\n${PAGE},two\n`)

const SERVICE = ['--service', liar.baseUrl]
const WALLET = [...SERVICE, '--wallet', path('wallet.key'), '--yes']
let runs = 0
const own = () => file(`own-${++runs}`)
const buy = (...more: string[]) => ['buy', PAGE, `claim ${++runs}`, ...WALLET, ...PIN, '--journal', own(), ...more]
const batch = (input: string, budget: string) => ['batch', input, ...WALLET, '--budget', budget, '--out', own()]
const check = (input: string, ...more: string[]) => ['check', input, ...SERVICE, '--key', file('key.txt'), ...more]
const mcp = (...more: string[]) => ['mcp', ...WALLET, '--journal', own(), ...more]
const failing: Lie = { paid: () => refusal(422, 'source_not_found') }

/** A call for each status; `stop`: it gets a signal at that request, or at its first output. */
const CASES: Record<string, Record<number, { args: string[]; lie?: Lie; stop?: 'paid' | 'output'; input?: string }>> = {
  verify: {
    0: { args: ['verify', good, ...PIN] },
    1: { args: ['verify', bad, ...PIN] },
    2: { args: ['verify', good, ...PIN, '--recompute'] },
  },
  replay: {
    0: { args: ['replay', ...whole, '--pin', `${KEY_ID}:${pubkeyHex}`] },
    1: { args: ['replay', ...broken, '--pin', `${KEY_ID}:${pubkeyHex}`] },
    2: { args: ['replay', ...whole] },
  },
  watch: {
    0: { args: ['watch', log.baseUrl, own(), '--once'] },
    1: { args: ['watch', log.baseUrl, put('ahead.json', JSON.stringify(ahead)), '--once'] },
    2: { args: ['watch', log.baseUrl, bad, '--once'] },
    3: { args: ['watch', `${liar.baseUrl}/none`, own(), '--once'] },
  },
  buy: {
    0: { args: buy() },
    1: { args: buy('--expect', 'contradicts') },
    2: { args: buy('--expect', 'maybe') },
    3: { args: buy('--max-price', '0.01') },
    4: { args: buy(), lie: { unpaid: () => refusal(422, 'source_not_found') } },
    5: {
      args: buy(),
      lie: { paid: (asked) => ({ status: 200, body: signedByStranger(asked), headers: TOKEN }) },
    },
    6: { args: buy('--out', file('full')) },
    130: { args: buy(), lie: { paid: () => refusal(202, 'request_pending', { headers: TOKEN }) }, stop: 'paid' },
  },
  batch: {
    0: { args: batch(one, '1') },
    1: { args: batch(one, '1'), lie: failing },
    2: { args: batch(plain, '1') },
    3: { args: batch(two, '0.03') },
    130: { args: batch(two, '1'), stop: 'paid' },
  },
  check: {
    0: { args: check(plain) },
    1: { args: check(quoted) },
    2: { args: check(file('none.md')) },
    130: {
      args: [...check(report, '--verify', '--budget', '1', '--verdicts', own()), ...WALLET.slice(2)],
      stop: 'paid',
    },
  },
  mcp: {
    0: { args: mcp('--budget', '1') },
    2: { args: mcp() },
    130: {
      args: mcp('--budget', '1'),
      stop: 'output',
      input: '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
    },
  },
}
const TOKEN = { 'x-service-recovery-token': RECOVERY_TOKEN }

/** The statuses in the help of a command, as `0 good, 1 bad; 130 interrupted`. */
const promised = (text: string) =>
  [...text.replace(/\s+/g, ' ').matchAll(/(?:^|[,;.] )(\d+) /g)].map(([, code]) => Number(code))

async function stopped(
  args: string[],
  at: 'paid' | 'output',
  { lie, input = '' }: { lie: Lie; input?: string },
): Promise<number> {
  const child = spawn(process.execPath, [join(ROOT, 'client/cli.ts'), ...args], { env: BARE_ENV, cwd: folder })
  const stop = () => void child.kill('SIGINT')
  if (at === 'output') child.stdout.once('data', stop)
  liar.lie = {
    paid(asked) {
      stop()
      return lie.paid?.(asked) ?? { status: 200, body: truth(asked), headers: TOKEN }
    },
  }
  child.stdin.write(input)
  const [code] = await once(child, 'close')
  return code
}

for (const [name, { exitStatus }] of COMMANDS) {
  if (exitStatus === undefined) continue
  t.test(`${name}: each status that its help promises`, async (t) => {
    t.same(Object.keys(CASES[name] ?? {}).map(Number), promised(exitStatus))
    for (const [status, { args, lie = {}, stop, input }] of Object.entries(CASES[name] ?? {})) {
      liar.lie = lie
      const ran = stop ? { code: await stopped(args, stop, { lie, input }), stderr: '' } : await countersign(args)
      t.equal(ran.code, Number(status), `${args.join(' ')}\n${ran.stderr}`)
    }
  })
}

t.test('what a service refuses ends every other command with 1', async (t) => {
  const OTHERS: Record<string, number> = { watch: 3, buy: 4 }
  const refusing = await listen(
    t,
    createServer((_request, response) => {
      const error = { code: 'not_found', message: 'There is none.', retryable: false }
      response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
    }),
  )
  for (const call of CALLS.filter(({ asks }) => asks)) {
    const { code, stderr } = await countersign(argumentsOf(call, refusing, folder))
    t.equal(code, OTHERS[call.name] ?? 1, `${call.name}\n${stderr}`)
  }
})

t.test('the answer no ends with 2 every command that asks before its work', async (t) => {
  const asking = CALLS.filter(({ name, args }) => args.includes('--yes') && !CASES[name])
  t.ok(asking.length > 4)
  for (const { name, args } of asking) {
    const rest = args.filter((word) => word !== '--yes')
    const { code, stderr } = await countersign(argumentsOf({ args: rest }, liar.baseUrl, folder), { typed: 'n\n' })
    t.match({ code, stderr }, { code: 2, stderr: /Nothing was done\.\n$/ }, name)
  }
})

t.test('the guide says of each status of a citation what it does to the exit status', async (t) => {
  const guide = readFileSync(join(ROOT, 'docs/guide/check.md'), 'utf8')
  const rows = [...guide.matchAll(/^\| `(\w+)` \| .* \| (0|1|0, a warning) \|$/gm)].map(([, status, exit]) => [
    status,
    exit,
  ])
  const exitOf = { none: '0', note: '0', warning: '0, a warning', error: '1' }
  t.same(
    Object.fromEntries(rows),
    Object.fromEntries(Object.entries(LEVELS).map(([name, level]) => [name, exitOf[level]])),
  )
})

t.test(
  'the table of the guide has each status of the program, and names the commands that have more than others',
  async (t) => {
    const guide = readFileSync(join(ROOT, 'client/README.md'), 'utf8')
    const [, table = ''] = /\| exit status \| meaning \|\n.*\n((?:\|.*\n)+)/.exec(guide) ?? []
    const rows = table.split('\n').flatMap((row) => {
      const [, codes = '', meaning = ''] = /^\| ([\d, ]+) \| (.*) \|$/.exec(row) ?? []
      return codes
        .split(', ')
        .filter(Boolean)
        .map((code) => [Number(code), meaning] as const)
    })
    t.same(
      rows.map(([code]) => code),
      [...EXIT_STATUSES],
    )
    const meaningOf = new Map(rows)
    for (const [name, { exitStatus = '' }] of COMMANDS)
      for (const code of promised(exitStatus))
        if (code > 2) t.match(meaningOf.get(code), new RegExp(`\`${name}[\` ]`), `${name}: ${code}`)
  },
)
