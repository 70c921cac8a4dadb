// An operator's drain: a process finishes its work, takes no new work, is shown as drained, and takes jobs again when
// asked.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { askDrain } from '../../server/operate/drain.ts'
import { openPresence } from '../../server/operate/presence.ts'
import { runCli } from '../cli-process.ts'
import { holdPage } from '../site.ts'
import { PAGE, payingFetch, type System, startSystem } from '../system.ts'
import { until } from '../until.ts'

/**
 * Polls the state of the one process until it is the expected one. Each poll writes a heartbeat, because the next
 * regular one may be five seconds away.
 */
async function reach({ service, sql }: System, wanted: string | null) {
  const { presence } = service.api
  for (;;) {
    await presence?.publish()
    const [row] = await sql(
      `select drain_asked_at is not null asked, drained_at is not null drained, (select count(*)::int from worker_beats) beats from processes`,
    )
    const { asked, drained, beats } = row ?? {}
    const state = asked ? (drained ? 'drained' : 'draining') : drained ? 'resuming' : null
    if (state === wanted) return { beats }
    await pause(25)
  }
}

t.test('a drained process finishes its job, takes none, and takes them again', async (t) => {
  const held = holdPage({ body: PAGE })
  await using system = await startSystem({ pages: { '/held': held.page }, overrides: { slowMs: 60_000 } })
  const env = { DATABASE_URL: system.databaseUrl }
  const cli = async (...args: string[]) => {
    const ran = await runCli(env, ...args)
    return { ...ran, said: args.includes('--json') ? JSON.parse(ran.stdout) : null }
  }
  const body = { source_url: system.site.url('/held'), claim: 'The harbour was opened in 1874.' }
  const key = randomUUID()
  await system.ask({ key, body, fetch: payingFetch() })
  await held.reached

  const { said: listed } = await cli('processes', 'list', '--json')
  t.match(listed, [{ kind: 'all', alive: true, drain: null }])
  const id = listed[0].id as string
  t.match(await cli('processes', 'drain', id), { code: 2, stderr: /repeat the command with --yes/ }, 'it asks first')
  t.match(await cli('processes', 'drain', randomUUID(), '--yes'), { code: 1, stderr: /No living process/ })
  t.match(await cli('processes', 'drain', id.slice(0, 4), '--yes'), { code: 1 }, 'four digits may be of many')
  t.match(await cli('processes', 'drain', id.slice(0, 8), '--yes', '--json'), {
    code: 0,
    said: { process: id.slice(0, 8), outcome: 'asked_to_drain' },
  })
  await reach(system, 'draining')
  t.match((await cli('status')).stdout, new RegExp(`${id.slice(0, 8)} .* draining\\n`))
  held.release()
  t.same(await reach(system, 'drained'), { beats: 0 }, 'it counts as no worker')
  const [request] = await system.sql('select state from verification_requests')
  t.match(request, { state: 'completed' }, 'what it had is finished')

  t.match((await cli('processes', 'list')).stdout, /drained\n/)
  const { said: status } = await cli('status', '--json')
  t.match(status.processes, [{ drain: 'drained' }])
  t.match(status.warnings, [{ what: /no worker is alive/, cure: /processes resume all/ }])
  const metrics = await (await fetch(system.url('/metrics'))).text()
  t.match(metrics, /^countersign_processes_drained 1$/m)
  t.equal((await fetch(system.url('/readyz'))).status, 200, 'it still answers callers')
  await system.sql(`select graphile_worker.add_job('sweep_requests', job_key => 'of-the-test')`)
  await reach(system, 'drained')
  const waiting = `select locked_at from graphile_worker.jobs where key = 'of-the-test'`
  t.same(await system.sql(waiting), [{ locked_at: null }], 'a new job waits')

  t.match(await cli('processes', 'resume', 'all', '--json'), { code: 0, said: { outcome: 'asked_to_resume' } })
  t.same(await reach(system, null), { beats: 1 })
  await until(async () => (await system.sql(waiting)).length === 0)
  t.match((await cli('processes', 'list', '--json')).said, [{ id, drain: null }])
  await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  t.equal((await cli('status', '--json')).said.last_hour.settled, 2, 'it sells again')
})

t.test('the dashboard asks first, and logs what it did', async (t) => {
  const token = 'a-token-for-the-operator'
  await using system = await startSystem({ env: { OPERATOR_TOKEN: token } })
  const post = (path: string, fields: Record<string, string>, cookie = '') =>
    fetch(system.url(path), {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie },
      body: new URLSearchParams(fields).toString(),
    })
  const cookie = (await post('/operator/sign-in', { token })).headers.get('set-cookie')?.split(';')[0] ?? ''
  const read = async (path: string) => (await fetch(system.url(path), { headers: { cookie } })).text()
  const [row] = await system.sql('select id from processes')
  const [drain, resume] = ['drain_process', 'resume_process'].map((action) => ({ action, subject: String(row?.id) }))
  const before = await read('/operator')
  t.ok(before.includes(`/operator/act?${new URLSearchParams(drain).toString().replace('&', '&amp;')}`))
  t.notMatch(before, /Drain all/, 'there is one process')
  const form_token = /name="form_token" value="([\w-]+)"/.exec(before)?.[1] ?? ''
  t.match(await read(`/operator/act?${new URLSearchParams(drain)}`), /Drain this process\?[\s\S]*nothing is sold/)
  t.same(
    await system.sql('select drain_asked_at from processes'),
    [{ drain_asked_at: null }],
    'a question does nothing',
  )
  t.equal((await post('/operator/act', { ...drain, form_token }, cookie)).status, 303)
  await reach(system, 'drained')
  // The dashboard keeps its reading for a second.
  const after = await until(async () => {
    const page = await read('/operator')
    return />drained</.test(page) && page
  })
  t.match(after, /Take jobs again…[\s\S]*/)
  t.equal((await post('/operator/act', { ...resume, form_token }, cookie)).status, 303)
  await reach(system, null)
  t.match(
    await system.sql('select action, subject, outcome from operator_actions where action_id > 1 order by action_id'),
    [
      { ...drain, outcome: 'asked_to_drain' },
      { ...resume, outcome: 'asked_to_resume' },
    ],
  )
})

t.test('what is asked is tried again, is not lost with a swept row, and is never asked of a web process', async (t) => {
  await using system = await startSystem()
  const { api } = system.service
  await using worker = await openPresence(api, 'worker', {})
  await using _web = await openPresence(api, 'web', {})
  const calls: boolean[] = []
  let fails = true
  await using _following = worker.follow(async (drains) => {
    calls.push(drains)
    if (fails) throw new Error('the database was away')
  })
  t.equal(await askDrain(api.db, 'all', true), 'asked_to_drain')
  const web = await system.sql(`select drain_asked_at from processes where kind = 'web'`)
  t.same(web, [{ drain_asked_at: null }])
  const [row] = await system.sql(`select id from processes where kind = 'web'`)
  t.equal(await askDrain(api.db, String(row?.id), true), 'not_found')
  await worker.publish()
  await worker.publish()
  t.ok(calls.length >= 1 && calls.every((drains) => drains))
  const failed = calls.length
  fails = false
  while (calls.length === failed) await worker.publish()
  const drained = `select count(*)::int from processes where kind = 'worker' and drain_asked_at is not null and drained_at is not null`
  const isDrained = async () => (await system.sql(drained))[0]?.count === 1
  while (!(await isDrained())) await worker.publish()
  await system.sql(`delete from processes where kind = 'worker'`)
  await worker.publish()
  t.ok(await isDrained(), 'it stays drained under its new id')
  const before = calls.length
  await askDrain(api.db, 'all', false)
  while (calls.length === before) await worker.publish()
  t.equal(calls.at(-1), false)
})
