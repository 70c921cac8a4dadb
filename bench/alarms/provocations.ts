// How each alarm is provoked, and the cure that docs/operations.md names for it. Conditions are real; where an alarm needs
// minutes or hours, rows get the age that they would have then.
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { every } from '../../server/db/interval.ts'
import { refuse } from '../../test/assessment/messages-server.ts'
import { deeds } from '../../test/payments/evm-facilitator.ts'
import { command, end, endWeb, event, events, expect, type Provocation, until } from './provocation.ts'
import type { Stage } from './stage.ts'

const ROOT = join(import.meta.dirname, '../..')
/** More than the increase that the alarm needs. */
const MANY = 24
const ASKING_MS = 300

export const PROVOCATIONS: readonly Provocation[] = [
  {
    alarms: ['CountersignDatabaseAway'],
    means: 'Postgres is stopped',
    provoke: ({ world }) => world.postgres.stop(),
    seenInStatus: async ({ cli }) => {
      const { code, stderr } = await cli('status', '--json')
      return code === 1 && /database of the service does not answer[\s\S]*cure:/.test(stderr)
    },
    events: events(event('dependency_away', { dependency: 'database' })),
    cure: 'bring it back',
    heal: ({ world }) => world.postgres.start(),
  },
  {
    alarms: ['CountersignUnseen'],
    means: 'the web process is killed',
    provoke: (stage) => stage.kill(stage.web!),
    cure: 'start a web process',
    heal: (stage) => stage.startWeb(),
  },
  {
    alarms: ['CountersignNotReady'],
    means: 'a release with a new migration is started without `migrate`',
    async provoke(stage) {
      stage.root = await makeNextRelease(stage.lab.folder)
      await endWeb(stage)
      await stage.startWeb()
    },
    cure: 'npm run cli -- migrate',
    async heal(stage) {
      await command(stage, 0, 'migrate')
    },
  },
  {
    alarms: [
      'CountersignNoWorker',
      'CountersignQueueBehind',
      'CountersignRequestStuck',
      'CountersignDeadlinesLate',
      'CountersignPruningLate',
    ],
    means: 'all workers are killed; a paid request and an unpaid one are made some minutes old',
    async provoke(stage) {
      // Returns from the release of the previous provocation to this one.
      stage.root = undefined
      await endWeb(stage)
      await stage.startWeb()
      for (const worker of stage.workers) await stage.kill(worker)
      expect(await stage.order(), 202)
      expect(await stage.askTerms(), 402)
      const { admin } = stage.world
      await admin.query(
        `update verification_requests set changed_at = now() - interval '6 minutes' where state = 'accepted'`,
      )
      await admin.query(
        `update verification_requests set quote_expires_at = now() - interval '20 minutes' where state = 'quoted'`,
      )
      await admin.query(
        `update graphile_worker._private_jobs set run_at = now() - interval '3 minutes' where key like 'verify:%'`,
      )
    },
    cure: '`requests list --stuck`, `requests show`; start a worker',
    async heal(stage) {
      const stuck = await command(stage, 0, 'requests', 'list', '--stuck', '--json')
      const [request] = JSON.parse(stuck.stdout) as { id: string }[]
      await command(stage, 0, 'requests', 'show', request!.id)
      await stage.startWorker()
    },
  },
  {
    alarms: ['CountersignResultsSlow'],
    means: 'a request is accepted while no worker runs, and is taken a minute and a half later',
    async provoke(stage) {
      for (const worker of stage.workers) await stage.kill(worker)
      expect(await stage.order(), 202)
      await stage.world.admin.query(
        `update verification_requests set accepted_at = accepted_at - interval '90 seconds' where state = 'accepted'`,
      )
      await stage.startWorker()
    },
    events: events(event('verification_completed')),
    cure: 'start another worker',
    heal: async (stage) => void (await stage.startWorker()),
  },
  {
    alarms: ['CountersignWorkersDie'],
    means: 'three workers are killed beside one that lives',
    async provoke(stage) {
      const doomed = []
      while (doomed.length < 3) doomed.push(await stage.startWorker())
      // The living worker knows each by its beats and its lock.
      await pause(4000)
      await Promise.all(doomed.map((worker) => stage.kill(worker)))
    },
    events: events(event('rescued')),
    cure: 'fewer WORKER_FETCHES',
    async heal(stage) {
      for (const worker of stage.workers) await end(stage, worker)
      await stage.startWorker({ WORKER_FETCHES: '64' })
    },
  },
  {
    alarms: ['CountersignEventLoopBlocked'],
    means: 'the web process gets a tenth of its CPU',
    async provoke(stage) {
      starve(stage)
    },
    cure: 'give it more CPU',
    async heal() {
      starving?.abort()
    },
  },
  {
    alarms: ['CountersignModelAway', 'CountersignServerErrors'],
    means: 'the model answers 529; callers go on asking',
    async provoke(stage) {
      sane = stage.world.model.script
      stage.world.model.script = () => refuse(529, 'overloaded_error')
      await until(async () => (await stage.order()) === 503)
      asking = goOn(() => stage.order())
    },
    events: events(event('dependency_away', { dependency: 'model scripted-1' })),
    cure: '`doctor`; the model answers again',
    async heal(stage) {
      await stage.cli('doctor')
      await asking?.[Symbol.asyncDispose]()
      stage.world.model.script = sane!
    },
  },
  {
    alarms: ['CountersignSettlementUnknown'],
    means: 'the facilitator takes payments and never answers, and the node of the chain is away',
    async provoke({ world, order }) {
      settling = world.facilitator.watch.request
      world.facilitator.watch.request = async (path) => {
        if (path === '/settle') world.facilitator.script.push(deeds.lostBefore)
      }
      world.rpc.shut = true
      for (let n = 0; n < 8; n++) await order()
    },
    events: events(event('settlement', { outcome: 'unknown' })),
    cure: '`payments list-unresolved`; facilitator and node answer again',
    async heal(stage) {
      const { world } = stage
      await command(stage, 1, 'payments', 'list-unresolved')
      world.rpc.shut = false
      world.facilitator.watch.request = settling!
      await until(async () => (await stage.cli('payments', 'list-unresolved')).code === 0)
    },
  },
  {
    alarms: ['CountersignFailing'],
    means: 'port 443 of all pages is closed',
    async provoke({ hosts, order, world }) {
      await hosts.close()
      for (let n = 0; n < MANY; n++) await order(world.hosts.pages[n % world.hosts.pages.length])
    },
    events: events(event('verification_failed')),
    cure: 'give access to port 443',
    heal: ({ hosts }) => hosts.open(),
  },
  {
    alarms: ['CountersignWorkFailed'],
    means: 'the database refuses what the worker writes',
    async provoke({ order, world: { admin } }) {
      await admin.query(
        `alter table verification_requests add constraint provoked check (observation is null) not valid`,
      )
      expect(await order(), 202)
      await until(async () => {
        await admin.query(
          `update graphile_worker._private_jobs set run_at = now() where key like 'verify:%' and locked_at is null`,
        )
        const { rowCount } = await admin.query(
          `select from verification_requests where state = 'failed' and error ->> 'code' = 'execution_failed'`,
        )
        return rowCount === 1
      })
    },
    events: events(event('verification_error')),
    cure: 'the cause that log event verification_error names is mended',
    heal: async ({ world: { admin } }) =>
      void (await admin.query('alter table verification_requests drop constraint provoked')),
  },
  {
    alarms: ['CountersignDeadJobs'],
    means: 'the database refuses what pruning deletes',
    async provoke({ askTerms, world: { admin } }) {
      await admin.query(`
        create function provoked() returns trigger language plpgsql as $$ begin raise exception 'provoked'; end $$;
        create trigger provoked before delete on verification_requests for each row execute function provoked()`)
      expect(await askTerms(), 402)
      await admin.query(
        `update verification_requests set quote_expires_at = now() - interval '2 hours' where state = 'quoted'`,
      )
      await admin.query(`select graphile_worker.add_job('prune_requests', max_attempts => 1)`)
    },
    cure: '`jobs dead`, `jobs redrive all`',
    async heal(stage) {
      await stage.world.admin.query('drop trigger provoked on verification_requests')
      await command(stage, 1, 'jobs', 'dead')
      await command(stage, 0, 'jobs', 'redrive', 'all')
    },
  },
  {
    alarms: ['CountersignAlertsGivenUp'],
    means: 'the receiver of an alert refuses connections for 31 hours',
    async provoke({ account, hosts, world }) {
      await account.putWatchdog({ name: 'given-up', webhook_url: `https://${world.hosts.receiver}/`, interval_s: 3600 })
      await hosts.close()
      await account.sendHeartbeat({ name: 'given-up', status: 'fail' })
      await until(async () => {
        await world.admin.query(
          `update alerts set created_at = now() - interval '31 hours', next_attempt_at = now()
           where state = 'pending' and attempts > 0`,
        )
        return (await world.admin.query(`select from alerts where state = 'failed'`)).rowCount === 1
      })
    },
    events: events(event('alert_attempt')),
    cure: 'tell the owner, who can redeliver',
    async heal({ account, hosts, world: { admin } }) {
      await hosts.open()
      const { rows } = await admin.query<{ id: string }>(`select id from alerts where state = 'failed'`)
      await account.redeliverAlert({ name: 'given-up', id: rows[0]!.id })
      await until(async () => (await admin.query(`select from alerts where state = 'failed'`)).rowCount === 0)
    },
  },
  {
    alarms: ['CountersignAdmissionSlow'],
    means: 'the database takes two and a half seconds to store what was paid',
    async provoke({ order, world: { admin } }) {
      await admin.query(`
        create function slowed() returns trigger language plpgsql as $$ begin perform pg_sleep(2.5); return new; end $$;
        create trigger slowed before insert or update on verification_requests
          for each row when (new.state = 'accepted') execute function slowed()`)
      expect(await order(), 202)
    },
    cure: 'look at the database: the trigger is gone',
    heal: async ({ world: { admin } }) => void (await admin.query('drop trigger slowed on verification_requests')),
  },
  {
    alarms: ['CountersignDetectionSlow'],
    means: 'the row of a watchdog is locked when its deadline passes',
    async provoke({ account, world: { admin, hosts } }) {
      await account.putWatchdog({
        name: 'late',
        webhook_url: `https://${hosts.receiver}/`,
        interval_s: 10,
        grace_s: 0,
      })
      await account.sendHeartbeat({ name: 'late' })
      await pause(8000)
      const client = await admin.connect()
      try {
        await client.query('begin')
        await client.query(`select from watchdogs where name = 'late' for update`)
        await client.query('select pg_sleep(10)')
        await client.query('rollback')
      } finally {
        client.release()
      }
    },
    cure: 'start another worker process',
    heal: async (stage) => void (await stage.startWorker()),
  },
]

let sane: Stage['world']['model']['script'] | undefined
let settling: Stage['world']['facilitator']['watch']['request'] | undefined
let asking: AsyncDisposable | undefined
let starving: AbortController | undefined

/** Until disposed. */
function goOn(call: () => Promise<unknown>): AsyncDisposable {
  return every(ASKING_MS, call, () => {})
}

function starve(stage: Stage) {
  starving = new AbortController()
  const { signal } = starving
  const child = stage.web!.process
  void (async () => {
    while (!signal.aborted) {
      child.kill('SIGSTOP')
      await pause(900)
      child.kill('SIGCONT')
      await pause(100)
    }
  })()
}

/** This code with one migration more. */
async function makeNextRelease(folder: string): Promise<string> {
  const root = join(folder, 'next-release')
  await mkdir(root)
  for (const part of ['client', 'docs', 'server', 'sql', 'workers', 'package.json'])
    await cp(join(ROOT, part), join(root, part), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  await writeFile(join(root, 'sql/9999_next.sql'), '--! safe: a table of its own\ncreate table next_release ();\n')
  return root
}
