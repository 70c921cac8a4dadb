// `doctor` on the offer: the assessment in force, the workers' assessment, and access to metrics; and `doctor` beside a running service.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { readConfig } from '../server/config.ts'
import { runDoctor } from '../server/doctor.ts'
import { LOADING } from '../server/verification/offer/assessors.ts'
import { openAccountHarness } from './accounts/harness.ts'
import { modelEnv, openMessagesServer, refuse, SILENT } from './assessment/semantic/messages-server.ts'
import { openScriptedFacilitator, startSystem } from './system.ts'
import { until } from './until.ts'

const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

const LONG_KEY = 'sk-key-of-this-test-0123456789'

async function find(subject: string, env: Record<string, string> = {}) {
  const config = readConfig({ DATABASE_URL: harness.api.databaseUrl, DATA_DIR: harness.api.config.dataDir, ...env })
  return (await runDoctor(config)).filter((finding) => finding.subject === subject)
}

const MODEL = {
  ANTHROPIC_API_KEY: 'k',
  ANTHROPIC_BASE_URL: 'http://user:pass@127.0.0.1:9/v',
  ANTHROPIC_MODEL: 'org/model',
}

t.test('the assessment in force, and the model by name and address', async (t) => {
  t.match(await find('assessment'), [{ ok: true, detail: /^local: the verifier local-1\S* gives the verdict/ }])
  t.match(await find('assessment', { ...MODEL, ASSESSMENT: 'literal' }), [{ ok: true, detail: /^literal/ }])
  t.match(await find('assessment', MODEL), [{ ok: true, detail: /^semantic: org\/model at http:\/\/127\.0\.0\.1:9 / }])
  t.match(await find('assessment', { ...MODEL, ASSESSMENT_FALLBACK: 'literal' }), [
    { detail: /while it does not answer/ },
  ])
})

t.test('workers that assess by another method than the offered one', async (t) => {
  const literal = 'retrieval-1+text-1 literal-1+icu-1+unicode-1+gate-1'
  await harness.tables.query('insert into worker_beats (pool_id, methodology) values ($1, $2)', ['a', literal])
  t.match(await find('workers', { ASSESSMENT: 'literal' }), [{ ok: true, detail: /^1 alive/ }])
  t.match(await find('workers', MODEL), [
    { ok: false, detail: /literal-1\S*, but semantic assessment is offered/, cure: /same ASSESSMENT/ },
  ])
  await harness.tables.query('delete from worker_beats')
  t.match(await find('workers', MODEL), [{ ok: false, cure: /start a worker/ }])
})

t.test('/metrics is closed without its token', async (t) => {
  const away = 'http://127.0.0.1:9'
  const live = {
    PAYMENT_MODE: 'testnet',
    SIGNING_SEED: '5e'.repeat(32),
    PAY_TO_EVM: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    BASE_URL: 'https://verify.example',
    FACILITATOR_URL: away,
    EVM_RPC_URL: away,
  }
  t.match(await find('metrics', live), [{ ok: false, detail: /OPERATOR_TOKEN is not set/, cure: /set OPERATOR_TOKEN/ }])
  t.match(await find('metrics', { ...live, OPERATOR_TOKEN: 'operator-token-of-this-test' }), [{ ok: true }])
  t.match(await find('metrics'), [{ ok: true, detail: /open/ }])
})

t.test('without a database every other check is made, and each finding says how to fix it', async (t) => {
  const { hostname, port, username, password } = new URL(harness.api.databaseUrl)
  const server = `postgres://${username}:${password}@${hostname}:${port}`
  const ask = async (url: string) => {
    const config = readConfig({
      DATABASE_URL: url,
      DATA_DIR: harness.api.config.dataDir,
      REDIS_URL: 'redis://127.0.0.1:9',
    })
    const found = await runDoctor(config)
    t.ok(found.find(({ subject }) => subject === 'assessment')?.ok, url)
    t.match(
      found.filter(({ subject }) => ['redis', 'workers', 'migrations', 'signing keys'].includes(subject)),
      Array(4).fill({ ok: false, cure: String }),
    )
    t.notMatch(JSON.stringify(found), new RegExp(password))
    return found.find(({ subject }) => subject === 'database')
  }
  t.match(await ask(`postgres://${username}:${password}@127.0.0.1:9/none`), {
    ok: false,
    detail: /127\.0\.0\.1:9\/none: nothing listens there/,
    cure: /start the database server/,
  })
  t.match(await ask(`${server}/never_made`), { ok: false, detail: /does not exist/, cure: /createdb/ })
  t.match(await ask(`postgres://${username}:${password}x@${hostname}:${port}/postgres`), {
    ok: false,
    detail: /password is wrong/,
  })
})

t.test('a model server that does not answer, and one that refuses the key', async (t) => {
  const server = createServer((_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body),
  )
  let body = ''
  let status = 401
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const env = { ...MODEL, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/v` }
  t.match(await find('model', env), [{ ok: false, detail: /refuses the key with HTTP 401; check ANTHROPIC_API_KEY/ }])
  status = 404
  t.match(await find('model', env), [{ ok: false, detail: /no such path or model \(HTTP 404\)/ }])
  status = 400
  body = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: `no ${LONG_KEY} here` } })
  const repeated = await find('model', { ...env, ANTHROPIC_API_KEY: LONG_KEY })
  t.match(repeated, [{ ok: false, detail: /HTTP 400: .*no \(key hidden\) here/ }], 'a server repeats the key')
  t.notMatch(JSON.stringify(repeated), LONG_KEY)
  server.close()
  t.match(await find('model', { ...MODEL, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/v` }), [
    { ok: false, detail: /cannot be reached \(.*\); check ANTHROPIC_BASE_URL/ },
  ])
  t.same(await find('model'), [], 'without a model there is nothing to ask')
})

t.test('beside a running service: its settings are checked, and those of this shell are only compared', async (t) => {
  await using model = await openMessagesServer(() => SILENT)
  await using system = await startSystem({
    env: { ...modelEnv(model), OPERATOR_TOKEN: 'operator-token-of-this-test', REDIS_URL: '' },
    overrides: { facilitator: openScriptedFacilitator() },
  })
  const { work } = system.service
  const shell = { DATABASE_URL: system.databaseUrl, DATA_DIR: harness.api.config.dataDir }
  const ask = async (env: Record<string, string> = {}, options = {}) => {
    const found = await runDoctor(readConfig({ ...shell, ...env }), options)
    return (subject: string) => found.find((finding) => finding.subject === subject)
  }
  await until(async () => (work.assessor.problem === null ? true : undefined))
  const trials = model.trials
  const shells: Record<string, Record<string, string>> = {
    'without the key': {},
    'another model, which does not answer': MODEL,
    'another assessment': { ASSESSMENT: 'literal' },
  }
  for (const [name, env] of Object.entries(shells)) {
    let find = await ask(env)
    await until(async () => {
      find = await ask(env)
      return find('model')?.ok
    })
    t.match(find('service'), { ok: true, detail: /^running \(all \d+ on .*\): its settings are checked/ }, name)
    t.match(find('assessment'), { ok: true, detail: /^semantic: scripted-1 at http/ }, name)
    t.match(find('workers'), { ok: true, detail: '1 alive' }, name)
    t.match(find('metrics'), { ok: true, detail: 'open to OPERATOR_TOKEN' }, name)
    t.match(find('this shell'), { ok: true, detail: /OPERATOR_TOKEN is \(set, hidden\) there, unset here/ }, name)
    t.notMatch(JSON.stringify(find('this shell')), /test-key|DATABASE_URL/, name)
  }
  t.match((await ask())('this shell')?.detail, /ANTHROPIC_API_KEY is \(set, hidden\) there, unset here/)
  t.equal(model.trials, trials, 'the workers have asked the model, so doctor does not')
  t.match((await ask({ ASSESSMENT: 'literal' }, { shell: true }))('workers'), { ok: false }, 'as asked')

  model.trial = refuse(404, 'not_found_error')
  await using second = await system.openTwin()
  const right = modelEnv(model)
  const broken = await until(async () => {
    const found = (await ask(right))('model')
    return found?.ok === false ? found : undefined
  })
  t.match(broken, { detail: /scripted-1 at http.*no such path or model \(HTTP 404\); check ANTHROPIC_BASE_URL/ })
  t.ok(second.address)
})

t.test('a verifier that is being loaded is waited for, and not for ever', async (t) => {
  const { tables } = harness
  const settings = { PAYMENT_MODE: 'offline', ASSESSMENT: 'local' }
  const present = `insert into processes (id, kind, host, pid, settings, figures) values (gen_random_uuid(), 'all', 'h', 1, $1, $2)`
  await tables.query(present, [settings, {}])
  const beat = 'insert into worker_beats (pool_id, methodology, assessor_problem) values ($1, $2, $3)'
  await tables.query(beat, ['slow', 'retrieval-1+text-1 local-1', LOADING])
  const ask = async (onPause: () => Promise<unknown>) => {
    let pauses = 0
    const pause = () => {
      pauses++
      return onPause()
    }
    const config = readConfig({ DATABASE_URL: harness.api.databaseUrl, DATA_DIR: harness.api.config.dataDir })
    const found = await runDoctor(config, { pause })
    return { pauses, found: found.filter(({ subject }) => subject === 'verifier') }
  }
  const begin = () => tables.query('update worker_beats set beat_at = now()')
  t.match(await ask(begin), {
    pauses: 60,
    found: [
      {
        ok: false,
        detail: 'the verifier is being loaded; this check has waited 30 s for it',
        cure: /^wait for log event verifier_ready/,
      },
    ],
  })
  const load = () => tables.query('update worker_beats set assessor_problem = null, beat_at = now()')
  t.match(await ask(load), { pauses: 1, found: [{ ok: true, detail: 'ready in 1 workers' }] })
  const fail = () => tables.query("update worker_beats set assessor_problem = 'the verifier cannot be loaded'")
  await fail()
  t.match(await ask(fail), { pauses: 0, found: [{ ok: false, detail: 'the verifier cannot be loaded', cure: /503/ }] })
  await tables.query('delete from worker_beats')
  await tables.query('delete from processes')
})

t.test('a shell without a way to the database hears that no service runs there', async (t) => {
  const dataDir = harness.api.config.dataDir
  const found = await runDoctor(readConfig({ DATA_DIR: dataDir }))
  t.match(
    found.find(({ subject }) => subject === 'database'),
    { ok: false, detail: /^the service is not running here: DATABASE_URL is not set, and no `npm start` is running/ },
  )
})
