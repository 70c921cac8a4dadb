// The commands of the control toolkit against the real service: an account from its registration to its last slot, the
// files of keys and secrets, and the questions before irreversible actions.
import { spawnSync } from 'node:child_process'
import { hash, randomUUID } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Countersign } from '../../client/client.ts'
import { account } from '../../client/commands/account.ts'
import { citation } from '../../client/commands/citation.ts'
import { type Command, helpOf } from '../../client/commands/command.ts'
import { journal } from '../../client/commands/journal.ts'
import { lease } from '../../client/commands/lease.ts'
import { receipt } from '../../client/commands/receipt.ts'
import { heartbeat, watchdog } from '../../client/commands/watchdog.ts'
import { payingFetch, type System, startSystem } from '../system.ts'
import { countersign, countersignApart, onTerminal, type Ran } from './command-line.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

async function openAccount(t: Test) {
  const folder = t.testdir({})
  const file = (name: string) => join(folder, name)
  const handle = `h-${randomUUID()}`
  const service = { COUNTERSIGN_SERVICE: system.url('/') }
  const made = await countersign(['account', 'register', handle, '--save', file('key')], { env: service })
  t.equal(made.code, 0, made.stderr)
  const env = { ...service, COUNTERSIGN_KEY: file('key') }
  const run = async (args: string[], code = 0, input?: string | Buffer): Promise<Ran> => {
    const ran = await countersign(args, { env, input })
    t.equal(ran.code, code, `${args.join(' ')}\n${ran.stdout}${ran.stderr}`)
    return ran
  }
  const json = async (...args: string[]) => JSON.parse((await run([...args, '--json'])).stdout)
  return { handle, made, file, env, run, json }
}

t.test('account: the key goes into a file of mode 600 and is not printed', async (t) => {
  const { handle, made, file, env, run, json } = await openAccount(t)
  const key = readFileSync(file('key'), 'utf8').trim()
  t.match(key, /^ctk_/)
  t.equal(statSync(file('key')).mode & 0o777, 0o600)
  t.match(made.stdout, new RegExp(`^handle: +${handle}\ntier: +free\nAPI key: +\\(in .*key\\)\n$`))
  t.notOk((made.stdout + made.stderr).includes(key))

  const taken = await countersign(['account', 'register', handle, '--save', file('other')], { env })
  t.match(taken, { code: 1, stderr: /^handle_taken: / })
  t.notOk(existsSync(file('other')), 'no file is left of what failed')
  const again = await countersign(['account', 'register', 'another', '--save', file('key')], { env })
  t.match(again, {
    code: 2,
    stderr: /Cannot use \S+key: it exists, and is not replaced\n/,
  })
  t.equal(readFileSync(file('key'), 'utf8').trim(), key, 'an existing file is not written over')

  t.match((await run(['account', 'show'])).stdout, /^handle: .*\n[\s\S]*^receipts_per_day +0 +\d+$/m)
  t.match(await json('account', 'show'), { handle, tier: 'free' })
  const second = await run(['account', 'keys', 'create', 'heartbeat', '--label', 'nightly'])
  t.match(second.stdout, /^API key: ctk_/m)
  t.match(second.stderr, /shown once/)
  const id = /^id: +(\S+)$/m.exec(second.stdout)?.[1] ?? ''
  t.match((await run(['account', 'keys', 'list'])).stdout, new RegExp(`^${id} +heartbeat +nightly`, 'm'))
  t.match(await run(['account', 'keys', 'revoke', id], 2), { stderr: /Repeat with --yes/ })
  t.equal((await json('account', 'keys', 'list')).api_keys.length, 2, 'without --yes nothing happened')
  t.equal((await json('account', 'keys', 'revoke', id, '--after', '60', '--yes')).id, id)
  t.match(await run(['account', 'upgrade', 'dev']), { stdout: /^pay at: +http/m })
  t.match(await run(['account', 'upgrade', 'gold'], 2), { stderr: /neither dev nor pro/ })
})

t.test('keys come from a file that others cannot use, or from the environment', async (t) => {
  const { env, file } = await openAccount(t)
  const key = readFileSync(file('key'), 'utf8').trim()
  const { COUNTERSIGN_SERVICE, COUNTERSIGN_KEY } = env
  const show = (args: string[], more: Record<string, string> = {}) =>
    countersign(['account', 'show', ...args], { env: { COUNTERSIGN_SERVICE, ...more } })
  t.equal((await show([], { COUNTERSIGN_KEY })).code, 0)
  t.equal((await countersignApart(['account', 'show'], { env })).code, 0, 'as a process of its own')
  t.equal((await show([], { COUNTERSIGN_KEY: key })).code, 0, 'the key itself')
  t.equal((await show(['--key', file('key')], { COUNTERSIGN_KEY: 'nothing' })).code, 0, 'the option goes before')
  const named = await countersign(['account', 'show', '--service', COUNTERSIGN_SERVICE, '--key', file('key')])
  t.equal(named.code, 0)

  t.match(await show([]), { code: 2, stderr: /Give --key FILE/ })
  t.match(await countersign(['account', 'show', '--key', file('key')]), { code: 2, stderr: /Give --service URL/ })
  const argument = await show(['--key', key])
  t.match(argument, { code: 2, stderr: /takes a file, not the key/ })
  t.notOk(argument.stderr.includes(key))
  t.match(await show(['--key', file('missing')]), {
    code: 2,
    stderr: /Cannot read an API key from \S+missing: ENOENT: no such file or directory$/m,
  })
  writeFileSync(file('other'), 'a secret of another kind', { mode: 0o600 })
  const other = await show(['--key', file('other')])
  t.match(other, { code: 2, stderr: /does not hold an API key/ })
  t.notOk(other.stderr.includes('a secret'))
  writeFileSync(file('empty'), '\n', { mode: 0o600 })
  t.match(await show(['--key', file('empty')]), { code: 2, stderr: /is empty/ })
  for (const mode of [0o640, 0o604, 0o620]) {
    chmodSync(file('key'), mode)
    t.match(await show(['--key', file('key')]), { code: 2, stderr: `mode ${mode.toString(8)}). Close it: chmod 600 ` })
  }
})

t.test('lease', async (t) => {
  const { run, json } = await openAccount(t)
  const terms = ['--agent', 'shopper', '--action', 'pay', '--lim', 'usd<=5', '--ttl', '60']
  const { lease } = await json('lease', 'grant', ...terms)
  t.match(lease, { agent: 'shopper', action: 'pay', lim: 'usd<=5' })
  const id: string = lease.lease_id
  t.match((await run(['lease', 'show', id])).stdout, /^state: +active\nagent: +shopper$/m)
  t.equal((await json('lease', 'renew', id)).lease.lease_id, id)
  t.match((await run(['lease', 'check', id, '--agent', 'shopper'])).stdout, /^good: +yes$/m)
  t.match((await run(['lease', 'check', id, '--agent', 'other'], 1)).stdout, /^good: +NO\nreason: +wrong_agent$/m)
  t.match((await run(['lease', 'list'])).stdout, new RegExp(`^LEASE .*\n${id} +active +shopper +pay +usd<=5 `))
  t.match(await run(['lease', 'revoke', id, '--yes']), { stdout: /^state: +revoked$/m })
  t.match(await run(['lease', 'renew', id], 1), { stderr: /^lease_ended: / })
  t.same((await json('lease', 'list')).leases, [])
  await run(['lease', 'grant', ...terms])
  t.equal((await json('lease', 'list', '--all')).leases.length, 2)
  t.match(await json('lease', 'list', '--all', '--limit', '1'), { leases: [{ state: 'active' }], next: /./ })
  t.match(await run(['lease', 'grant', '--agent', 'a'], 2), { stderr: /--action is missing/ })
  for (const ttl of ['0', '86401', '1.5', '-1'])
    t.match(await run(['lease', 'grant', ...terms.with(-1, ttl)], 2), { stderr: /--ttl/ }, ttl)
})

t.test('receipt', async (t) => {
  const { handle, file, run, json } = await openAccount(t)
  writeFileSync(file('report'), 'what it says')
  const digest = hash('sha256', 'what it says')
  const made = await json('receipt', 'create', '--file', file('report'), '--label', 'mine')
  t.match(made.attestation, { subject_sha256: digest, label: 'mine', requested_by: handle })
  const once = ['receipt', 'create', hash('sha256', 'other'), '--idempotency-key', 'the-same-again']
  t.same(await json(...once), await json(...once))
  const { serial } = made.attestation
  t.equal((await json('receipt', 'create', '--file', '-')).attestation.subject_sha256, hash('sha256', ''))
  t.match(
    (await run(['receipt', 'show', String(serial)])).stdout,
    new RegExp(`^digest: +${digest}\nlabel: +mine$`, 'm'),
  )
  t.same((await json('receipt', 'show', String(serial), '--tree', String(serial))).inclusion.tree_size, serial)
  const rows = (await run(['receipt', 'list'])).stdout.trimEnd().split('\n')
  t.equal(rows.length, 4)
  t.match(rows.at(-1), new RegExp(`^${serial} .* ${digest} +mine$`))
  t.match(await json('receipt', 'list', '--limit', '2'), { receipts: { length: 2 }, next: Number })

  writeFileSync(file('receipt.json'), JSON.stringify(made))
  writeFileSync(file('keys.json'), (await countersign(['keys', system.url('/')])).stdout)
  await run(['verify', file('receipt.json'), '--keys', file('keys.json')])
  for (const args of [[], [digest, '--file', file('report')], ['ABC']]) await run(['receipt', 'create', ...args], 2)
  await run(['receipt', 'show', 'x'], 2)
})

t.test('watchdog and heartbeat', async (t) => {
  const { file, env, run, json } = await openAccount(t)
  const set = ['watchdog', 'set', 'nightly', '--interval', '60', '--webhook', system.site.url('/hook')]
  const made = await run([...set, '--grace', '0', '--save', file('hook')])
  t.match(made.stdout, /^beats every: +60 s, and 0 s of grace$/m)
  t.match(readFileSync(file('hook'), 'utf8'), /^whsec_\S+\n$/)
  const changed = await run([...set, '--save', file('hook2')])
  t.match(changed.stderr, 'No new secret came')
  t.notOk(existsSync(file('hook2')))
  t.notMatch(changed.stdout, 'webhook secret')

  t.match((await run(['heartbeat', 'nightly', '--note', 'all is well'])).stdout, /^state: +up$/m)
  t.match((await run(['watchdog', 'show', 'nightly'])).stdout, /^note: +all is well$/m)
  t.match((await run(['watchdog', 'list'])).stdout, /^nightly +up +60 s /m)
  t.equal((await json('heartbeat', 'nightly', '--fail')).state, 'down')
  const pause = ['watchdog', 'pause', 'nightly', '--until']
  t.match((await json(...pause, '2099-01-01T00:00:00+01:00')).paused_until, '2098-12-31T23:00:00')
  t.match(await run([...pause, 'tomorrow'], 2), { stderr: /not an ISO time/ })
  t.not((await json('watchdog', 'resume', 'nightly')).state, 'paused')
  const { alert } = await json('watchdog', 'test', 'nightly')
  t.match((await run(['watchdog', 'alerts', 'nightly'])).stdout, new RegExp(`^${alert.id} +watchdog.test +`, 'm'))
  t.equal((await json('watchdog', 'alerts', 'nightly', '--limit', '1')).alerts.length, 1)
  t.match((await json('watchdog', 'rotate-secret', 'nightly')).webhook_secret, /^whsec_/)
  t.match(await run(['watchdog', 'redeliver', 'nightly', randomUUID()], 1), { stderr: /^not_found: / })

  const remove = ['watchdog', 'delete', 'nightly']
  t.match(await run(remove, 2), { stdout: '', stderr: /Delete the watchdog nightly.*--yes/ })
  for (const typed of ['n\n', '\n', '\u0004']) {
    const { code, stdout, stderr } = await countersign(remove, { env, typed })
    t.same([code, stdout], [2, ''])
    t.match(stderr, /^Delete the watchdog nightly and its alerts\? \[y\/N\]\s+Nothing was done\.\n$/)
  }
  t.match((await run(['watchdog', 'list'])).stdout, 'nightly')
  const skip = spawnSync('script', ['--version']).status === 0 ? false : 'there is no `script` to make a terminal with'
  await t.test('on a terminal the command asks before it pays', { skip }, async (t) => {
    t.match(await onTerminal(remove, env, '\u0004'), { code: 2, stdout: /\[y\/N\][\s\S]*Nothing was done\./ })
    t.match(await onTerminal(remove, env, 'y\n'), { code: 0, stdout: /nightly is deleted\./ })
  })
  if (skip) await run([...remove, '--yes'])
  t.match(await run(['watchdog', 'show', 'nightly'], 1), { stderr: /^not_found: / })
})

t.test('journal', async (t) => {
  const { file, env, run, json } = await openAccount(t)
  const data = Buffer.from([0, 1, 255, 10])
  writeFileSync(file('data'), data)
  const put = await run(['journal', 'put', 'state', file('data'), '--new'])
  t.match(put.stdout, new RegExp(`^bytes: +4\nSHA-256: +${hash('sha256', data)}$`, 'm'))
  t.match(await run(['journal', 'put', 'state', file('data'), '--new'], 1), { stderr: /^precondition_failed: / })
  t.same((await countersignApart(['journal', 'get', 'state'], { env })).bytes, data)
  const { etag, data_base64 } = await json('journal', 'get', 'state')
  t.same(Buffer.from(data_base64, 'base64'), data)
  await run(['journal', 'put', 'state', '-', '--if-match', etag], 0, 'from standard input')
  t.match(await run(['journal', 'put', 'state', '-', '--if-match', etag], 1), { stderr: /^precondition_failed: / })
  t.match((await run(['journal', 'list'])).stdout, /^state +19 /m)
  await run(['journal', 'put', 'state', '-'], 2, Buffer.alloc(65_537))
  t.match(await run(['journal', 'delete', 'state'], 2), { stderr: /--yes/ })
  t.match(await run(['journal', 'delete', 'state', '--if-match', etag, '--yes'], 1), {
    stderr: /^precondition_failed: /,
  })
  t.same(await json('journal', 'delete', 'state', '--yes'), { slot: 'state', deleted: true })
  t.match(await run(['journal', 'get', 'state'], 1), { stdout: '', stderr: /^not_found: / })
})

async function buyHarbour({ url, site }: System) {
  const service = new Countersign({ baseUrl: url('/'), fetch: payingFetch() })
  return service.verifySource({ source_url: site.url('/harbour'), claim: 'The harbour was opened in 1874.' })
}

t.test('citation: a quote that was bought is watched', async (t) => {
  const { file, run, json } = await openAccount(t)
  const { requestId, recoveryToken, result } = await buyHarbour(system)
  writeFileSync(file('token'), `${recoveryToken}\n`, { mode: 0o600 })
  const webhook = ['--webhook', system.site.url('/hook')]
  const quote = ['--request', requestId, '--evidence', 'e1', '--token', file('token')]
  const made = await run(['citation', 'set', 'harbour', ...webhook, ...quote, '--every', '6'])
  t.match(made.stdout, `quote:          ${result.evidence[0]?.quote.split('\n')[0]}`)
  t.match(made.stdout, /^webhook secret: whsec_/m)
  t.equal((await json('citation', 'set', 'harbour', ...webhook, '--every', '7')).every_hours, 7)
  t.match((await run(['citation', 'list'])).stdout, /^harbour +present +https:/m)
  t.match((await run(['citation', 'show', 'harbour'])).stdout, /^looked at: +every 7 h, next /m)
  t.equal((await json('citation', 'check', 'harbour')).name, 'harbour')
  t.match(await json('citation', 'test', 'harbour'), { alert: { type: 'citation.test' } })
  t.match((await run(['citation', 'alerts', 'harbour'])).stdout, /^\S+ +citation.test +/m)
  t.match(await run(['citation', 'set', 'other', ...webhook, '--request', requestId], 2), {
    stderr: /--evidence is missing/,
  })
  chmodSync(file('token'), 0o644)
  t.match(await run(['citation', 'set', 'other', ...webhook, ...quote], 2), { stderr: /a recovery token.*chmod 600/ })
  t.match(await run(['citation', 'delete', 'harbour'], 2), { stderr: /--yes/ })
  await run(['citation', 'delete', 'harbour', '--yes'])
  t.same(await json('citation', 'list'), { citation_watches: [] })
})

function* commandsIn(name: string, chosen: Command): Generator<[string, Command]> {
  yield [name, chosen]
  if ('commands' in chosen)
    for (const [word, one] of Object.entries(chosen.commands)) yield* commandsIn(`${name} ${word}`, one)
}

t.test('each command explains itself', async (t) => {
  const groups: Record<string, Command> = { account, lease, receipt, watchdog, heartbeat, journal, citation }
  const all = Object.entries(groups).flatMap(([word, one]) => [...commandsIn(`countersign ${word}`, one)])
  t.ok(all.length > 40)
  for (const [name, one] of all) {
    const help = helpOf(name, one)
    t.ok(help.startsWith(name))
    const examples = help.slice(help.indexOf('Examples:'))
    t.match(examples, name, `an example of ${name}`)
    t.same(
      help.split('\n').filter((line) => line.length > 125),
      [],
    )
  }
})

t.test('a group needs a command', async (t) => {
  for (const words of [['account'], ['account', 'keys'], ['lease'], ['journal', '--key', 'k', 'list']])
    t.match(await countersign(words), { code: 2, stderr: /comes one of/ })
  t.match(await countersign(['account', 'keys', '--help']), {
    code: 0,
    stdout: /^ {2}countersign account keys revoke ID/m,
  })
  const unknown = await countersignApart(['watchdog', 'notarise', '--json'])
  t.equal(unknown.code, 2)
  t.equal(JSON.parse(unknown.stderr).error.code, 'wrong_usage')
})
