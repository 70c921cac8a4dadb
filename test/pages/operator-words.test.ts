// What the operator's pages say, without a service: counts in the singular too, and what a person has to do about what is open.
import t from 'tap'
import { counted } from '../../client/page/parts.ts'
import { openSite } from '../../server/pages/layout.ts'
import { closedPage } from '../../server/pages/operator/operator-frame.ts'
import { type Dashboard, operatorPage } from '../../server/pages/operator/operator-page.ts'
import { questionPage } from '../../server/pages/operator/operator-requests-page.ts'

const site = await openSite({ baseUrl: 'https://verify.example' })
const textOf = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')

/** A service in which there is so much of everything that is counted. */
function dashboard(count: number): Dashboard {
  const model = { calls: {}, tokens: {}, usd: 0 }
  const process = {
    id: 'p',
    kind: 'all',
    host: 'h',
    pid: 1,
    started_at: new Date(0),
    silent_seconds: 0,
    alive: true,
    drain: null,
  }
  const payment = {
    request_id: 'r',
    state: 'settling',
    open_seconds: 4,
    network: 'eip155:84532',
    payer: '0x1',
    transaction: null,
  }
  return {
    status: {
      at: new Date(0),
      warnings: [],
      requests: { working: count, oldest_seconds: 0, by_state: {} },
      queue: { due: count, oldest_seconds: 0, running: count, dead: 0 },
      workers: { alive: count, paused: 0 },
      processes: Array(count).fill(process),
      last_hour: { settled: 0, failed: 0 },
      last_day: { settled: 0, failed: 0 },
      alerts: { pending: count, oldest_seconds: 0, failing_webhooks: count },
      assessor: { methods: [], paused_seconds: 0, problems: [] },
      chain: { serial: 0, at: null },
      watchdogs: { by_state: {}, judged_seconds_ago: 0 },
      accounts: { total: 0, disabled: 0 },
      money_today: [{ mode: 'offline', network: 'eip155:84532', payments: count, amount_usd: '0.03' }],
    },
    unresolved: Array(count).fill(payment),
    undelivered: [],
    deadJobs: [],
    spending: { hour: model, day: model, week: model },
    week: [],
    failingHosts: [],
    refused: [],
  } as unknown as Dashboard
}
const shown = (count: number) => textOf(operatorPage(site, 'token', dashboard(count)))

t.test('one of a thing is in the singular', async (t) => {
  t.equal(counted(1, 'worker'), '1 worker')
  t.equal(counted(1200, 'worker'), '1,200 workers')
  t.equal(counted(2, 'web process', 'web processes'), '2 web processes')
  t.match(shown(1), / job due 1 .* job running 1 worker 1 web process 1 alert pending 1 /)
  t.match(shown(1), ' 1 pending, the oldest for 0 s; 1 webhook fails ')
  t.match(shown(1), ' in 1 payment (')
  t.match(shown(2), / jobs due 2 .* jobs running 2 workers 2 web processes 2 alerts pending 2 /)
  t.match(shown(2), '; 2 webhooks fail ')
  t.match(shown(2), ' in 2 payments (')
})

t.test('an open payment says what is asked of the operator', async (t) => {
  t.match(
    shown(1),
    /Payments that are not resolved A worker asks about each again until its outcome is proved, and charges nothing twice\. .*after an hour.* npm run cli -- payments list-unresolved .* npm run cli -- payments reconcile /,
  )
  t.match(shown(1), 'Not everything is done. Payments that are not resolved: 1. What to do ')
  t.match(operatorPage(site, 'token', dashboard(1)), /<a href="#payments">What to do<\/a>[\s\S]*<h2 id="payments">/)
  t.notMatch(shown(0), 'payments reconcile')
})

t.test('where an action would change nothing, the heading says so and asks nothing', async (t) => {
  const heading = (action: 'cancel_request' | 'retry_request', state: 'settling' | 'completed' | 'accepted') =>
    /<h1>(.*?)<\/h1>/.exec(questionPage(site, 'token', { action, subject: 'x' }, state))?.[1]
  t.equal(heading('cancel_request', 'settling'), 'This request cannot be cancelled')
  t.equal(heading('cancel_request', 'completed'), 'This request cannot be cancelled')
  t.equal(heading('retry_request', 'completed'), 'This request needs no new job')
  t.equal(heading('cancel_request', 'accepted'), 'Cancel this request?')
})

t.test('a closed dashboard has one token made, and given to every process', async (t) => {
  const page = textOf(closedPage(site))
  t.match(
    page,
    /Make a token, once openssl rand -hex 24 Set it, the same for every web and worker process, .* OPERATOR_TOKEN=/,
  )
  t.notMatch(page, 'OPERATOR_TOKEN=$(', 'which each process would read as another token')
})
