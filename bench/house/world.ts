// The dependencies of the service in the run: Postgres on a small disk, PgBouncer, Redis, a blockchain with its
// facilitator, a model, and web hosts. All of them can fail; the seed decides which calls fail.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { migrate } from '../../server/db/migrate.ts'
import {
  answer,
  type MessagesServer,
  modelEnv,
  openMessagesServer,
  refuse,
  type Script,
  SILENT,
  verdictOn,
} from '../../test/assessment/semantic/messages-server.ts'
import { type EvmChain, openEvmChain } from '../../test/payments/evm-chain.ts'
import { type Deed, deeds, type FacilitatorRig, openFacilitatorRig } from '../../test/payments/evm-facilitator.ts'
import { openRpcProxy, type RpcProxy } from '../../test/payments/rpc-proxy.ts'
import { hasPooler, openPooler } from '../../test/pooler.ts'
import { openPrivatePostgres, type PrivatePostgres } from '../../test/private-postgres.ts'
import { type Child, openChild } from '../child.ts'
import type { HostsReady } from '../crowd/messages.ts'
import { type Random, seeded } from '../eval/random.ts'
import type { Lab } from '../lab.ts'
import { type OwnRedis, openOwnRedis } from './own-redis.ts'
import { openSmallDisk, type SmallDisk } from './small-disk.ts'

const NETWORK = 'eip155:84532'
/** A real chain makes blocks also when none of its transactions are ours. */
const BLOCK_MS = 2000
const SLOW_MS = 1500
/** Successful calls of twenty calls to facilitator or model. */
const WELL = 17

/** Which worker takes which request, and when. */
const RECORD_STARTS = `
  create table starts (at timestamptz, worker text, key text);
  create table kills (id serial, at timestamptz, worker text, key text, kind text not null default 'killed');
  create function record_start() returns trigger language plpgsql as $$ begin
    if new.locked_by is not null and new.locked_by is distinct from old.locked_by and new.key like 'verify:%' then
      insert into starts values (clock_timestamp(), new.locked_by, new.key);
    end if;
    return new;
  end $$;
  create trigger record_start after update on graphile_worker._private_jobs for each row execute function record_start()`

export interface World extends AsyncDisposable {
  postgres: PrivatePostgres
  /** Queries of the bench. They fail while Postgres is away. */
  admin: pg.Pool
  /** Null where this user may mount nothing. */
  disk: SmallDisk | null
  /** Null where the machine has no PgBouncer. */
  pooler: { url: string; replace(): Promise<void> } | null
  /** Null where the machine has no Redis. */
  redis: OwnRedis | null
  chain: EvmChain
  rpc: RpcProxy
  facilitator: FacilitatorRig
  model: MessagesServer
  /** The address that is paid. */
  payTo: `0x${string}`
  hosts: HostsReady
  /** Ends what the hostile hosts hold open. */
  hostsProcess: Child
  /** The environment of every process of the service. */
  env: Record<string, string>
  /** How often facilitator and model did what. */
  deeds: Record<string, number>
  /** From now on facilitator and model do not fail. */
  calm(): void
  /** What cannot be tried on this machine, in words. */
  missing: string[]
}

export async function openWorld(lab: Lab, seed: number, { smallDisk }: { smallDisk: boolean }): Promise<World> {
  await using opened = new AsyncDisposableStack()
  const missing: string[] = []
  let disk: SmallDisk | null = null
  const postgres = opened.use(
    await openPrivatePostgres({
      async prepare(folder) {
        disk = smallDisk ? await openSmallDisk(folder) : null
        if (smallDisk && !disk) missing.push('a full disk: this user may not mount a small one')
        return disk ?? { async [Symbol.asyncDispose]() {} }
      },
    }),
  )
  await migrate(postgres.url)
  const admin = new pg.Pool({ connectionString: postgres.url, max: 3, application_name: 'bench' })
  admin.on('error', () => {})
  opened.defer(() => admin.end())
  await admin.query(RECORD_STARTS)
  // As docs/operations.md asks for behind a pooler.
  await admin.query(`alter role current_user set statement_timeout = '30s'`)
  await admin.query(`alter role current_user set idle_in_transaction_session_timeout = '10s'`)
  const pooler = hasPooler ? await openReplaceablePooler(postgres.url, opened) : null
  if (!pooler) missing.push('PgBouncer: it is not on this machine')
  const redis = await openOwnRedis(opened)
  if (!redis) missing.push('Redis: it is not on this machine')

  const counts: Record<string, number> = {}
  const temper = openTemper(seed, counts)
  const chain = opened.use(await openEvmChain(NETWORK))
  const mining = setInterval(() => void chain.controls.mine({ blocks: 1 }).catch(() => {}), BLOCK_MS)
  opened.defer(() => clearInterval(mining))
  const rpc = opened.use(await openRpcProxy(chain.url))
  const facilitator = opened.use(await openFacilitatorRig(chain))
  facilitator.watch.request = async (path) => {
    if (path === '/settle') facilitator.script.push(temper.settle())
  }
  const payTo = privateKeyToAccount(generatePrivateKey()).address
  const model = opened.use(await openMessagesServer(temper.assess))
  opened.use(forget(model, facilitator.received))
  const hostsProcess = opened.use(
    await openChild(lab, 'bench/crowd/hosts.ts', { event: 'hosts_ready', args: [lab.folder], ipc: true }),
  )
  const hosts = hostsProcess.ready as unknown as HostsReady
  const closing = opened.move()
  return {
    postgres,
    admin,
    disk,
    pooler,
    redis,
    chain,
    rpc,
    facilitator,
    model,
    payTo,
    hosts,
    hostsProcess,
    deeds: counts,
    calm: temper.calm,
    missing,
    env: {
      DATABASE_URL: postgres.url,
      ...(redis && { REDIS_URL: redis.url }),
      PAYMENT_MODE: 'testnet',
      BASE_URL: 'https://house.example',
      FACILITATOR_URL: facilitator.url,
      EVM_RPC_URL: rpc.url,
      PAY_TO_EVM: payTo,
      ...modelEnv(model, { ASSESSMENT_TIMEOUT_SECONDS: '10' }),
      FIXTURE_HOSTS: hosts.fixtures,
      FIXTURE_CA_FILE: hosts.caFile,
      RATE_LIMIT_PER_MINUTE: '0',
      MAX_IN_FLIGHT_PER_PAYER: '0',
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function openReplaceablePooler(url: string, opened: AsyncDisposableStack) {
  let pooler = await openPooler(url)
  opened.defer(() => pooler[Symbol.asyncDispose]())
  return {
    url: pooler.url,
    async replace() {
      await pooler[Symbol.asyncDispose]()
      pooler = await openPooler(url, new URL(pooler.url).port)
    },
  }
}

/** Decides by the seed how facilitator and model answer. */
function openTemper(seed: number, counts: Record<string, number>) {
  const random = seeded(seed + 7919)
  let isCalm = false
  const choose = <T>(what: string, moods: Record<string, T>, good: string): T => {
    const name = isCalm || random(20) < WELL ? good : pick(random, Object.keys(moods))
    const label = `${what} ${name}`
    counts[label] = (counts[label] ?? 0) + 1
    return moods[name]!
  }
  // One account signs for the facilitator, and its transactions are numbered.
  let turn = Promise.resolve<unknown>(undefined)
  const inTurn =
    (deed: Deed): Deed =>
    (call) =>
      deed({
        ...call,
        perform() {
          const performed = turn.then(call.perform)
          turn = performed.catch(() => {})
          return performed
        },
      })
  return {
    settle: () => inTurn(choose('facilitator', deeds, 'settles')),
    assess: ((asked) => choose('model', MODEL_MOODS, 'answers')(asked)) satisfies Script,
    calm: () => {
      isCalm = true
    },
  }
}

const WORDS = 'opened in 1874'
const judge = (asked: Parameters<Script>[0]) => (asked.isMasked ? SILENT : verdictOn(asked, WORDS, 'supports'))

const MODEL_MOODS = {
  answers: judge,
  async slow(asked: Parameters<Script>[0]) {
    await pause(SLOW_MS)
    return judge(asked)
  },
  overloaded: () => refuse(529, 'overloaded_error'),
  broken: () => refuse(500, 'api_error'),
  limited: () => refuse(429, 'rate_limit_error', { 'retry-after': '1' }),
  drops: () => (_asked, response) => void response.destroy(),
  garbled: () => (_asked, response) => answer(response, 'I would rather talk about harbours.'),
} satisfies Record<string, Script>

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)]!
}

/** Deletes the records that the stand-ins keep of each call, which would fill the memory of the bench. */
function forget(model: MessagesServer, received: unknown[]): Disposable {
  const timer = setInterval(() => {
    model.asked.length = 0
    received.length = 0
  }, 5000)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
