// The operator's commands on a database with real states: a stuck request, a dead job, a disabled account, a tampered chain, a
// payment that was charged twice.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { publicSettings, readConfig } from '../../server/config.ts'
import { openPresence } from '../../server/operate/presence.ts'
import { openWork } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
import { BARE_ENV } from '../children.ts'
import { askCli, type Ran, runCli, runCliApart } from '../cli-process.ts'
import { openQueue } from '../queue.ts'
import { payingFetch } from '../system.ts'

async function openOffice(env: Record<string, string> = {}) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness(env))
  const closing = opened.move()
  return {
    front,
    cli: (...args: string[]) => runCli(front.env, ...args),
    /** The jobs of the service, opened only by tests that need them, because the threads take time to start. */
    openJobs: async () => closing.use(openQueue(closing.use(await openWork(front.core)))),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const json = ({ stdout }: Ran) => JSON.parse(stdout)

/** Makes an accepted and paid request; answers its id. */
async function order(front: ApiHarness, key: string = randomUUID()): Promise<string> {
  const answer = await front.ask({ key, fetch: payingFetch() })
  if (answer.status !== 202) throw new Error(`${answer.status}`)
  return ((await answer.json()) as { request_id: string }).request_id
}

/** As if the request had been in its state for an hour. */
const age = ({ tables }: ApiHarness, id: string) =>
  tables.query(`update verification_requests set changed_at = now() - interval '1 hour' where id = $1`, [id])

const loseJobs = ({ tables }: ApiHarness) => tables.query('delete from graphile_worker._private_jobs')

t.test('status: one screen, warnings with cures, JSON', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const queue = await office.openJobs()
  const idle = await cli('status')
  t.equal(idle.code, 1)
  t.match(idle.stdout, /WARNING no web process is alive\n +cure: /)
  t.match(idle.stdout, /WARNING no worker is alive\n +cure: start one: `npm run worker`/)

  await order(front)
  await queue.drain()
  const failing = { source_url: front.site.url('/missing'), claim: 'It is there.' }
  await front.ask({ key: randomUUID(), fetch: payingFetch(), body: failing })
  await queue.drain()
  const stuck = await order(front)
  await age(front, stuck)
  await front.tables.query('update graphile_worker._private_jobs set attempts = max_attempts')
  await using _web = await openPresence(front.core, 'web', { PAYMENT_MODE: 'offline' })
  await using _worker = await openPresence(front.core, 'worker', { PAYMENT_MODE: 'testnet' })
  await front.tables.query(`insert into worker_beats (pool_id, methodology) values ('a', 'retrieval-1 literal-1')`)

  const answer = await cli('status', '--json')
  const status = json(answer)
  t.match(status, {
    processes: [
      { kind: 'web', pid: process.pid, alive: true },
      { kind: 'worker', alive: true },
    ],
    workers: { alive: 1, paused: 0 },
    queue: { due: 0, running: 0, dead: 1 },
    requests: { working: 1, by_state: { accepted: 1 } },
    last_hour: { settled: 1, failed: 1, failures: { source_http_status: 1 } },
    assessor: { methods: ['literal'], paused_seconds: 0 },
    money_today: [{ mode: 'offline', payments: 1, amount_usd: '0.03' }],
    unresolved_payments: { count: 0 },
    chain: { receipt_hash: /^[0-9a-f]{64}$/ },
  })
  t.ok(status.requests.oldest_seconds >= 3600)
  t.ok(status.chain.serial >= 1)
  const warnings = status.warnings.map(({ what }: { what: string }) => what).join('\n')
  t.match(warnings, /PAYMENT_MODE differs between processes: offline, testnet/)
  t.match(warnings, /1 job has used up its attempts/)
  t.match(warnings, /a request has been in its state for 3[67]\d\d s/)
  t.notMatch(warnings, /no web process|no worker/)
  const screen = await cli('status')
  t.match(status.model, { hour: { calls: {}, tokens: {}, usd: 0 } })
  t.match(screen.stdout, /model +last hour not asked; last day not asked\n/)
  t.match(screen.stdout, /last hour +1 charged, 1 failed \(1 source_http_status\), 50.0 % of 2/)
  t.ok(screen.stdout.split('\n').length < 50, 'one screen')

  await front.tables.query(`update processes set beat_at = now() - interval '1 minute' where kind = 'worker'`)
  t.match((await cli('status')).stdout, /WARNING the worker process \d+ on \S+ has been silent for 6\d s/)
})

t.test('requests: list, show, retry', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const queue = await office.openJobs()
  const stuck = await order(front)
  const fresh = await order(front)
  await loseJobs(front)
  t.match(json(await cli('requests', 'list', '--stuck', '--json')), [])
  await age(front, stuck)
  t.match(json(await cli('requests', 'list', '--stuck', '--json')), [{ id: stuck, state: 'accepted', job: 'none' }])
  t.same(
    json(await cli('requests', 'list', '--json')).map(({ id }: { id: string }) => id),
    [fresh, stuck],
    'the last changed first',
  )
  t.match(json(await cli('requests', 'list', '--host', 'other.test', '--json')), [])
  t.match(await cli('requests', 'list', '--state', 'lost'), { code: 2, stderr: /--state is one of quoted, accepted/ })
  t.match(await cli('requests', 'list', '--limit', '0'), { code: 2, stderr: /whole number/ })
  const shown = await cli('requests', 'show', stuck)
  t.match(shown, { code: 0, stdout: /state +accepted for 60 min/ })
  t.match(shown.stdout, /job +none/)
  t.notMatch((await cli('requests', 'show', stuck, '--json')).stdout, /signature|payment_sealed|nonce/)
  t.match(await cli('requests', 'show', randomUUID()), { code: 1, stderr: 'There is no such request.\n' })

  t.match(await cli('requests', 'retry', stuck), { code: 0 })
  t.match(json(await cli('requests', 'show', stuck, '--json')), { job: 'waiting', job_row: { attempts: 0 } })
  await front.tables.query('update graphile_worker._private_jobs set attempts = max_attempts')
  t.match(await cli('requests', 'retry', stuck), { code: 0 }, 'a dead job is replaced')
  await queue.drain()
  t.match(json(await cli('requests', 'show', stuck, '--json')), {
    state: 'completed',
    receipt_serial: Number,
    payments: [{ outcome: 'settled', amount_atomic: '30000' }],
  })
  t.match(await cli('requests', 'retry', stuck), { code: 1, stderr: /not in progress/ })
})

t.test('requests cancel: asks before, frees the payment, and leaves alone what may be charged', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const key = randomUUID()
  const id = await order(front, key)
  t.match(await cli('requests', 'cancel', id), { code: 2, stdout: '', stderr: /repeat the command with --yes/ })
  t.match(json(await cli('requests', 'show', id, '--json')), { state: 'accepted' })
  for (const typed of ['y\n', 'no\n'])
    t.match(
      await askCli(front.env, typed, 'requests', 'cancel', id),
      { code: 2, stderr: /Type yes to go on: Nothing was changed\./ },
      typed,
    )
  t.match(json(await cli('requests', 'show', id, '--json')), { state: 'accepted' })
  const agreed = await askCli(front.env, 'yes\n', 'requests', 'cancel', id)
  t.match(agreed, { code: 0, stdout: 'cancelled; nothing was charged\n' })
  const row = json(await cli('requests', 'show', id, '--json'))
  t.match(row, { state: 'failed', code: 'cancelled', payments: [{ outcome: 'failed', reason: 'cancelled' }] })
  t.equal((await front.tables.query('select from payment_claims')).rowCount, 0)
  t.equal((await front.ask({ key })).status, 402, 'its caller can pay again')
  t.match(await cli('requests', 'cancel', id, '--yes'), { code: 1, stderr: /not in progress/ })

  const settling = await order(front)
  await front.tables.query(
    `update verification_requests set state = 'settling', observation = '{}', assessment = '{}', settlement_intent = '{"at":1}'
     where id = $1`,
    [settling],
  )
  t.match(await cli('requests', 'cancel', settling, '--yes'), { code: 1, stderr: /may have been charged/ })
  t.match(json(await cli('requests', 'show', settling, '--json')), { state: 'settling' })
})

t.test('jobs dead, jobs redrive', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const queue = await office.openJobs()
  t.match(await cli('jobs', 'dead'), { code: 0, stdout: 'none\n' })
  const ids = [await order(front), await order(front)]
  await front.tables.query(`update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'it broke'`)
  const dead = await cli('jobs', 'dead', '--json')
  t.equal(dead.code, 1)
  t.match(json(dead), [{ task: 'verify_request', last_error: 'it broke' }, { task: 'verify_request' }])
  t.match(await cli('jobs', 'redrive', 'everything'), { code: 2, stderr: /number of a job/ })
  t.match(await cli('jobs', 'redrive', '999999'), { code: 1, stderr: /no such dead job/ })
  t.match(json(await cli('jobs', 'redrive', json(dead)[0].id, '--json')), { redriven: 1 })
  t.match(json(await cli('jobs', 'redrive', 'all', '--json')), { redriven: 1 })
  await queue.drain()
  const { rows } = await front.tables.query('select state from verification_requests where id = any($1)', [ids])
  t.same(rows, [{ state: 'completed' }, { state: 'completed' }])
})

t.test('accounts: list, show, disable, enable', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const register = await fetch(front.url('/v1/register'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ handle: 'kelby' }),
  })
  const { api_key: key } = (await register.json()) as { api_key: string }
  const usage = () => fetch(front.url('/v1/usage'), { headers: { authorization: `Bearer ${key}` } })
  t.equal((await usage()).status, 200)
  t.match(json(await cli('accounts', 'list', '--json')), [{ handle: 'kelby', tier: 'free', disabled_at: null }])
  t.match(json(await cli('accounts', 'list', '--disabled', '--json')), [])
  const shown = await cli('accounts', 'show', 'kelby', '--json')
  t.match(json(shown), { handle: 'kelby', keys: [{ kind: 'full' }], leases_active: 0 })
  t.notMatch(shown.stdout, /ctk_|key_hash/)

  t.match(await cli('accounts', 'disable', 'kelby'), { code: 2, stderr: /cannot renew its leases.*\n.*--yes/ })
  t.equal((await usage()).status, 200)
  t.match(await cli('accounts', 'disable', 'kelby', '--yes'), { code: 0 })
  // Does what other processes do within two seconds.
  front.api.callers.clear()
  const refused = await usage()
  t.equal(refused.status, 403)
  t.match(await refused.json(), { error: { code: 'forbidden', message: /disabled/ } })
  const quote = await front.ask({ key: randomUUID(), headers: { authorization: `Bearer ${key}` } })
  t.equal(quote.status, 402, 'what needs no account is served all the same')
  t.match((await cli('accounts', 'list')).stdout, /kelby .* disabled 20/)
  t.match((await cli('accounts', 'show', 'kelby')).stdout, /state +disabled since/)
  t.match(await cli('accounts', 'enable', 'kelby'), { code: 0 })
  front.api.callers.clear()
  t.equal((await usage()).status, 200)
  t.match(await cli('accounts', 'disable', 'nobody', '--yes'), { code: 1, stderr: 'There is no such account.\n' })
})

t.test('audit: all is well after purchases of every end, and each planted fault is found', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  const queue = await office.openJobs()
  const first = await order(front)
  const second = await order(front)
  await front.ask({
    key: randomUUID(),
    fetch: payingFetch(),
    body: { source_url: front.site.url('/missing'), claim: 'x' },
  })
  await front.ask({ key: randomUUID() })
  await queue.drain()
  const working = await order(front)
  const clean = await cli('audit', '--signatures')
  t.match(clean, { code: 0, stderr: '' })
  t.notMatch(clean.stdout, /FAIL/)
  t.match(json(await cli('audit', '--json')), { ok: true, checked: { one_charge_per_request: 2, work_has_job: 1 } })

  t.match(await cli('payments', 'reconcile'), {
    code: 0,
    stdout: '0 entries agree with the chain, 0 differ, 0 are still open, 3 are simulated\n',
  })

  const plant = async (text: string, values: unknown[] = []) => {
    const client = await front.tables.connect()
    try {
      // Without triggers, as a superuser of the database can do it.
      await client.query('set session_replication_role = replica')
      await client.query(text, values)
      await client.query('reset session_replication_role')
    } finally {
      client.release()
    }
  }
  const faults = async () => {
    const answer = await cli('audit', '--json')
    t.equal(answer.code, 1)
    return (json(answer).faults as { check: string; subject: string }[]).map(
      ({ check, subject }) => `${check} ${subject}`,
    )
  }

  await age(front, working)
  await loseJobs(front)
  t.same(await faults(), [`work_has_job ${working}`])
  await plant(`delete from payment_claims where request_id = $1`, [working])
  t.same(await faults(), [`work_has_job ${working}`, `payment_is_bound ${working}`])
  await plant(`delete from verification_requests where id = $1`, [working])

  await plant('drop index payment_ledger_one_charge')
  const copied = `request_id, outcome, reason, network, asset, payer, nonce, pay_to, amount_atomic, valid_before, provider, mode`
  await plant(`insert into payment_ledger (${copied}) select ${copied} from payment_ledger where request_id = $1`, [
    first,
  ])
  const twice = await faults()
  t.equal(twice.length, 2)
  t.equal(twice[0], `one_charge_per_request ${first}`)
  t.match(twice[1], /^one_charge_per_payment eip155:84532 0x/)
  t.match(
    (await cli('audit')).stdout,
    new RegExp(`FAIL a request, and so.*\\n +${first}: charged 2 times, by entries `),
  )
  await plant(`delete from payment_ledger where entry = (select max(entry) from payment_ledger)`)

  await plant(`delete from payment_ledger where request_id = $1`, [second])
  t.same(await faults(), [`served_is_charged ${second}`])
  await plant(
    `insert into payment_ledger (${copied}) select $1, ${copied.replace('request_id, ', '').replace(' nonce,', " 'x',")}
     from payment_ledger where request_id = $2`,
    [second, first],
  )

  const { rows } = await front.tables.query(`select result from verification_requests where id = $1`, [first])
  const bytes = rows[0].result as Buffer
  const alter = (from: string | RegExp, to: string) => {
    const altered = bytes.toString('utf8').replace(from, to)
    t.not(altered, bytes.toString('utf8'), to)
    return plant('update verification_requests set result = $2 where id = $1', [first, Buffer.from(altered)])
  }
  const changes: [string | RegExp, string, RegExp][] = [
    ['1874', '1875', /: its digest is not the one that its receipt attests/],
    ['"quote":"', '"quote":"Not ', /: its digest is not/],
    ['"price_usd":"0.03"', '"price_usd":"0.01"', /: its digest is not/],
    [/"result_sha256":"..../, '"result_sha256":"0000', /: its digest is not/],
    [/"canonical_envelope_base64":"ey/, '"canonical_envelope_base64":"eY', /: its canonical envelope/],
    [/"sig_ed25519_hex":"..../, '"sig_ed25519_hex":"0000', /: its receipt \d is another one/],
    [/"requested_by":"/, '"requested_by":"x', /: its receipt \d is another one/],
    [/"serial":\d/, '"serial":9', /: its receipt 9 is not in the chain/],
    ['"verification":"Pin', '"verification":"Do not pin', /: how to verify it is told in other words/],
    ['"receipt":{', '"receipt":{"note":"x",', /: its bytes are not those of a result/],
    // The same values, for most readers.
    ['{', '{ ', /: its bytes are not those of a result/],
    ['{', '{"claim":"another",', /: its bytes are not those of a result/],
    ['1874', '\\ud800', /: its bytes are not those of a result/],
    [/.$/, '', /: its bytes are not those of a result/],
  ]
  for (const [from, to, said] of changes) {
    await alter(from, to)
    t.same(await faults(), [`result_has_receipt ${first}`], to)
    t.match(
      (await cli('audit')).stdout,
      new RegExp(`FAIL every stored result.*\\(2 checked\\)\\n +${first}${said.source}`),
    )
  }
  const { rows: others } = await front.tables.query(`select result from verification_requests where id = $1`, [second])
  await plant('update verification_requests set result = $2 where id = $1', [first, others[0].result])
  t.same(await faults(), [`result_has_receipt ${first}`], 'the result of another request')
  await plant('update verification_requests set result = $2 where id = $1', [first, bytes])
  t.equal((await cli('audit')).code, 0)

  await plant(`update receipts set label = 'another' where serial = 1`)
  const damaged = await faults()
  t.ok(damaged.length >= 1 && damaged.every((one) => one.startsWith('chain ')), damaged.join())
})

t.test('config --running: what the processes have, where they differ, and no secret', async (t) => {
  const secret = 'hunter2hunter2hunter2'
  await using office = await openOffice({ OPERATOR_TOKEN: secret, ANTHROPIC_API_KEY: secret })
  const { front, cli } = office
  t.match(await cli('config', '--running'), { code: 1, stdout: 'no process is alive\n' })
  const config = readConfig({ ...front.env, ANTHROPIC_BASE_URL: `http://user:${secret}@127.0.0.1:9/v?key=${secret}` })
  await using _web = await openPresence(front.core, 'web', publicSettings(config))
  await using _worker = await openPresence(front.core, 'worker', { ...publicSettings(config), QUOTE_TTL_SECONDS: '60' })
  const shown = await cli('config', '--running')
  t.equal(shown.code, 0)
  t.match(shown.stdout, /web 1 .*\nworker 2 /)
  t.match(shown.stdout, /QUOTE_TTL_SECONDS=900 {4}only web 1\nQUOTE_TTL_SECONDS=60 {4}only worker 2\n/)
  t.match(shown.stdout, /OPERATOR_TOKEN=\(set, hidden\)\n/)
  t.match(shown.stdout, /ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:9\/v \(credentials hidden\)\n/)
  t.match(json(await cli('config', '--running', '--json')).differing, [{ name: 'QUOTE_TTL_SECONDS' }])
  const { rows } = await front.tables.query('select settings::text from processes')
  t.notMatch(JSON.stringify([shown, rows]), new RegExp(secret))
  t.notMatch(JSON.stringify(rows), new RegExp(front.databaseUrl.split(':')[2]?.split('@')[0] ?? 'none'))
})

t.test('--json of every command is JSON and nothing else', async (t) => {
  await using office = await openOffice()
  const { front, cli } = office
  await fetch(front.url('/v1/register'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"handle":"kelby"}',
  })
  const id = await order(front)
  const challenge = await front.ask({ key: randomUUID() })
  const given: Record<string, readonly string[]> = {
    'keys rotate': ['lease'],
    'chain verify': ['links'],
    'requests show': [id],
    'requests retry': [id],
    'requests cancel': [id],
    'jobs redrive': ['all'],
    'processes drain': ['all'],
    'processes resume': ['all'],
    'accounts show': ['kelby'],
    'accounts disable': ['kelby'],
    'accounts enable': ['kelby'],
    'account tier': ['kelby', 'pro'],
    'payments show': [id],
    'billing show': ['kelby'],
    'sign-offline': [challenge.headers.get('payment-required') ?? ''],
  }
  const { stdout: help } = await cli('--help')
  const names = [...help.matchAll(/^ {2}([a-z][a-z -]*?)(?: <.*>)? {2,}\S/gm)].map(([, name = '']) => name)
  t.ok(names.length >= 28, `${names.length} commands`)
  for (const name of names) {
    const { code, stdout, stderr } = await cli(...name.split(' '), ...(given[name] ?? []), '--json', '--yes')
    t.ok(code < 2, `${name}: ${code} ${stderr}`)
    t.doesNotThrow(() => JSON.parse(stdout), `${name}: ${stdout.slice(0, 200)}${stderr}`)
  }
  t.match(await cli('config', '--markdown', '--json'), { code: 2, stderr: /Leave out --json or --markdown/ })
})

t.test('a database that is not there: every command that needs it says so, and what to do', async (t) => {
  const foreign = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
  t.teardown(() => foreign.close())
  const given: Record<string, string> = { 'keys rotate': 'receipt', 'chain verify': 'links', 'account tier': 'a pro' }
  const { stdout } = await runCli({}, '--help')
  const names = [...stdout.matchAll(/^ {2}([a-z][a-z -]*?)(?: <(.*)>)? {2,}\S/gm)]
  t.ok(names.length >= 28)
  for (const port of [9, (foreign.address() as AddressInfo).port])
    for (const [, name = '', takes] of names) {
      if (['config', 'doctor', 'sign-offline'].includes(name)) continue
      const words = takes === undefined ? [] : (given[name] ?? 'x').split(' ')
      const bare = { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none` }
      const ran = await runCli(bare, ...name.split(' '), ...words, '--json')
      t.same([ran.code, ran.stdout], [1, ''], name)
      const { code, message } = JSON.parse(ran.stderr).error
      t.equal(code, 'provider_unavailable', `${name}: ${message}`)
      t.match(message, /^The database of the service does not answer\. .+\ncure: check DATABASE_URL/, name)
    }
})

t.test('calls: help of a group, options, pipes', async (t) => {
  const bare = { DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' }
  const [group, unknown, option, help, offline, own] = await Promise.all([
    runCli(bare, 'payments'),
    runCliApart(bare, 'paymnets'),
    runCli(bare, 'status', '--jsn'),
    runCli(bare, 'requests', 'list', '--help'),
    runCli(bare, 'sign-offline', 'abc'),
    runCli(bare, '--help'),
  ])
  t.match(group, { code: 2, stdout: '', stderr: /^payments needs one more word\.[\s\S]*payments reconcile/ })
  t.notMatch(group.stderr, /requests/)
  t.match(unknown, { code: 2, stderr: /^"paymnets" is not one of the commands\./ })
  t.match(option, { code: 2, stderr: /^status: Unknown option '--jsn'\.\n\nnpm run cli/ })
  t.match(help, { code: 0, stdout: /requests list[\s\S]*--stuck/ })
  t.match(offline, { code: 2, stderr: /header PAYMENT-REQUIRED/ })
  t.match(own, { code: 0, stdout: /accounts disable <handle>/ })
  const dead = await runCliApart(bare, 'status')
  t.match(dead, {
    code: 1,
    stdout: '',
    stderr: /^The database of the service does not answer\. .*ECONNREFUSED.*\ncure: /,
  })
  t.notMatch(dead.stderr, /\n +at /, 'no stack')
  t.match(await runCli(bare, '-h'), { code: 0, stdout: own.stdout })
  t.match(await runCli(bare, 'requests', 'list', '-h'), { code: 0, stdout: help.stdout })

  const child = spawn(process.execPath, [join(import.meta.dirname, '../../server/cli.ts'), 'config'], {
    env: BARE_ENV,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let errors = ''
  child.stderr.on('data', (chunk) => (errors += chunk))
  const [code] = await once(child, 'close')
  t.same([code, errors], [0, ''], 'a closed pipe is no error')

  const missing = await runCli(bare, 'sign-offline')
  t.match(missing, { code: 2, stderr: /^sign-offline takes <PAYMENT-REQUIRED>, and none was given\.\n\n/ })
  const many = await runCli(bare, 'chain', 'verify', 'links', 'twice')
  t.match(many, { code: 2, stderr: /^chain verify takes <links\|signatures>, and "links twice" was given\.\n\n/ })
  const mistyped = await runCli(bare, 'keys', 'rotat')
  t.match(mistyped, { code: 2, stderr: /^keys takes no argument: "keys rotat" is not one of the commands\.\n\n/ })

  const full = await open('/dev/full', 'w')
  t.teardown(() => full.close())
  const cramped = spawn(process.execPath, [join(import.meta.dirname, '../../server/cli.ts'), 'config'], {
    env: BARE_ENV,
    stdio: ['ignore', full.fd, 'pipe'],
  })
  const [said, [status]] = await Promise.all([text(cramped.stderr!), once(cramped, 'close')])
  t.same([status, said], [74, 'cannot write standard output: no space left on device\n'], 'a full disk')
})
