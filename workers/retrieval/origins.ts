// Limits the requests to the hosts that are read. All workers together have at most a few requests in progress at one
// origin, never start two at the same time, and start none while the origin's Retry-After lasts. A job that cannot have a
// turn at once waits in the origin's line (origin-line.ts) and is woken when a turn is free.
//
// Turns are shared. Work that no purchase pays for may have half of them and waits behind paid work; one payer may have as many as
// there are, and a visit that lasts long gives its turn up and goes on, so that slow pages do not hold an origin.
//
// A turn is a row of `origin_visits`. The rows of a killed worker count until the worker is found dead, or until `until`, a
// few seconds later.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { openBatcher } from '../../server/db/batch.ts'
import { enqueue, type JobSpec } from '../../server/db/jobs.ts'
import { column, type Database, nothing, relaxed, sql, type Tx, transact } from '../../server/db/pool.ts'
import { AppError } from '../../server/errors.ts'
import type { Logger } from '../../server/telemetry.ts'
import type { Lane } from '../../server/threads/lanes.ts'
import { joinLine, type Line, payerOf, wakeLine } from './origin-line.ts'
import { MAX_PAUSE_SECONDS, OriginBusyError, type OriginWait, planWait } from './origin-wait.ts'
import type { Hops, RetryLaterError } from './response.ts'

export interface OriginLimits {
  /** Requests under way at one origin. */
  concurrency: number
  /** Milliseconds between the starts of two requests. */
  spacingMs: number
  /**
   * Milliseconds after which a visit gives its turn up. While more than `concurrency` visits have done so, their payers get no more
   * turns.
   */
  longMs?: number
}

const ORIGIN_LIMITS: OriginLimits = { concurrency: 4, spacingMs: 50 }
/** Most pages are read within a second. */
const LONG_MS = 5000
/** Share of the turns that free work may have. */
const FREE_SHARE = 0.5
/** A job that would wait longer than this in the worker waits in the line instead. */
const MAX_WAIT_MS = 2000
/** A visit counts for this long after its last renewal. Its worker renews it every third of that time. */
const VISIT_SECONDS = 15
/** The Retry-After for callers while only the service's own limits delay a job. */
const LINE_SECONDS = 5

export interface Origins extends AsyncDisposable {
  /**
   * The turns of one fetch. Each hop of it asks for a turn at its own origin. Dispose it when the fetch has ended.
   * @param jobKey the job that fetches; its place in a line is found by it
   * @param lane for whom it fetches
   */
  openHops(jobKey: string, signal: AbortSignal, lane?: Lane): Hops & AsyncDisposable
  /**
   * Puts the job into the line that `busy` names, and into the queue, where it runs by itself after `seconds`.
   * @param hold in the same transaction, before: notes what the caller waits for; false if the job is no longer the caller's
   */
  waitInLine(busy: OriginBusyError, wait: Wait, hold?: (tx: Tx) => Promise<boolean>): Promise<void>
  /** Gives the free turns of a line to the jobs in it. */
  wake(line: string): Promise<void>
}

/** A job that waits in a line. */
export interface Wait {
  job: JobSpec & { key: string }
  /** When the request or check of the job arrived; the order of the line. */
  since: Date
  seconds: number
}

/**
 * Lets a job without a turn wait in its line. Answers null, or the error with which the job ends because it cannot wait as long.
 * @param wait `secondsLeft`: for which the job may still wait; `url`: the page
 * @param hold as in `waitInLine`; `waiting` is what the caller is told
 */
export async function waitForTurn(
  origins: Pick<Origins, 'waitInLine'>,
  busy: OriginBusyError,
  { url, secondsLeft, job, since }: Omit<Wait, 'seconds'> & { url: string; secondsLeft: number },
  hold: (tx: Tx, waiting: OriginWait['waiting']) => Promise<boolean> = async () => true,
): Promise<AppError | null> {
  const plan = planWait(busy, url, secondsLeft)
  if (plan instanceof AppError) return plan
  await origins.waitInLine(busy, { job, since, seconds: plan.seconds }, (tx) => hold(tx, plan.waiting))
  return null
}

export function buildOrigins(
  db: Database,
  options: { limits?: OriginLimits | undefined; log: Logger; makeId?: () => string },
): Origins {
  const makeId = options.makeId ?? randomUUID
  const limits = { longMs: LONG_MS, ...(options.limits ?? ORIGIN_LIMITS) }
  const visits = new Set<string>()
  // One statement renews all visits of the process. A lost renewal lets one visit too many begin, which does no harm.
  const signs = setInterval(
    () => {
      if (visits.size > 0) void prolong(db, [...visits]).catch(() => {})
    },
    (VISIT_SECONDS * 1000) / 3,
  ).unref()

  async function enter(url: URL, { jobKey, signal, lane }: Visitor): Promise<string> {
    const visit = makeId()
    const asked = { origin: url.origin, urlLine: urlLine(url), visit, jobKey, lane }
    const waitMs = readTurn(url, await turns.add(asked), lane)
    visits.add(visit)
    // Then the turn is free for another job.
    const later = setTimeout(() => visits.has(visit) && void wake(url.origin), limits.longMs + waitMs + MARGIN_MS)
    later.unref()
    try {
      if (waitMs > 0) await pause(waitMs, undefined, { signal })
    } catch (error) {
      await leave(visit, url.origin)
      throw error
    }
    return visit
  }

  // Turns that are requested at the same time are taken in one statement, and visits that end at the same time end in one
  // statement.
  const turns = openBatcher((asked: AskedTurn[]) => takeTurns(db, asked, limits), { batch: 64, queue: 4096 })
  const endings = openBatcher((ended: Ended[]) => endVisits(db, ended), { batch: 256, queue: 4096 })

  /** What was fetched counts all the same when this fails: the visit is not renewed, and ends by itself within VISIT_SECONDS. */
  async function leave(visit: string, origin: string) {
    visits.delete(visit)
    try {
      if (await endings.add({ visit, origin })) await wake(origin)
    } catch (error) {
      options.log.warn({ event: 'visit_not_ended', origin, err: error })
    }
  }

  /** A failed wake-up costs only time, because every job in a line also has its own later time. */
  async function wake(line: string) {
    try {
      await transact(db, (tx) => wakeLine(tx, lineOf(line, limits)))
    } catch (error) {
      options.log.warn({ event: 'origin_wake_failed', err: error })
    }
  }

  return {
    openHops(jobKey, signal, lane) {
      let turn: { visit: string; origin: string } | undefined
      const end = async () => {
        const ended = turn
        turn = undefined
        if (ended) await leave(ended.visit, ended.origin)
      }
      return {
        async enter(url) {
          if (turn?.origin === url.origin) return
          await end()
          turn = { visit: await enter(url, { jobKey, signal, lane }), origin: url.origin }
        },
        async postpone(url, answer) {
          const line = await block(db, url, answer)
          const seconds = Math.min(answer.retryAfterSeconds, MAX_PAUSE_SECONDS)
          const asked = { host: url.hostname, status: answer.status, seconds: answer.retryAfterSeconds }
          return new OriginBusyError(line, seconds, asked, { tried: true, lane })
        },
        [Symbol.asyncDispose]: end,
      }
    },
    async waitInLine({ line, tried, lane }, { job, since, seconds }, hold = async () => true) {
      await transact(db, async (tx) => {
        if (!(await hold(tx))) return
        await joinLine(tx, { line, tried, since, lane }, job)
        await enqueue(tx, [{ ...job, runAt: new Date(Date.now() + seconds * 1000) }])
      })
      // A turn may have become free before the commit.
      await wake(line)
    },
    wake,
    async [Symbol.asyncDispose]() {
      clearInterval(signs)
      await turns[Symbol.asyncDispose]()
      await endings[Symbol.asyncDispose]()
    },
  }
}

interface Visitor {
  jobKey: string
  signal: AbortSignal
  lane: Lane | undefined
}

/** The clock of the database decides which visits are long. */
const MARGIN_MS = 100

interface Ended {
  visit: string
  origin: string
}

/** Deletes the visits; for each, whether jobs wait for a turn at its origin. */
async function endVisits(db: Database, ended: Ended[]): Promise<boolean[]> {
  await db.query(sql.prepared('end_visits', nothing)`
    with ${relaxed}
    delete from origin_visits using relaxed where id = any(${column(ended, 'uuid', ({ visit }) => visit)})`)
  // Runs after the delete has been committed. A job that joins the line meanwhile looks for free turns after its own
  // commit, so at least one of the two transactions sees the other.
  const waited = await db.anyFirst(sql.prepared('find_lines', z.object({ origin: z.string() }))`
    select distinct origin from origin_waits where origin = any(${column(ended, 'text', ({ origin }) => origin)})`)
  const lines = new Set(waited)
  return ended.map(({ origin }) => lines.has(origin))
}

async function prolong(db: Database, visits: readonly string[]) {
  await db.query(sql.prepared('prolong_visits', nothing)`
    update origin_visits set until = now() + ${VISIT_SECONDS} * interval '1 second'
    where id = any(${sql.array(visits, 'uuid')})`)
}

/** The line of one URL: for a pause that its own answer asked for, which does not concern other URLs of the host. */
function urlLine(url: URL): string {
  return `url:${digestOf(url).toString('hex')}`
}

function digestOf(url: URL): Buffer {
  const page = new URL(url.href)
  page.hash = ''
  return createHash('sha256').update(page.href).digest()
}

/** A URL's line has no turns of its own: its jobs go on to the line of the host. */
function lineOf(name: string, { concurrency, longMs }: Required<OriginLimits>): Line {
  if (name.startsWith('url:')) return { name, turns: null, keep: 0 }
  return {
    name,
    turns: { all: concurrency, free: freeTurns(concurrency), longSeconds: longMs / 1000 },
    keep: VISIT_SECONDS,
  }
}

const freeTurns = (concurrency: number) => Math.max(1, Math.floor(concurrency * FREE_SHARE))

const blockedRow = z.object({ line: z.string() })

/**
 * Records the pause that an answer asked for and returns the line it is for: the host's for 429 and 503, otherwise the
 * URL's. The URL itself is always blocked. One that has its row still, which is kept for an hour after its pause, blocks only
 * itself: so no URL, and no few URLs in turn, block the others again and again.
 */
async function block(db: Database, url: URL, { status, retryAfterSeconds, about }: RetryLaterError): Promise<string> {
  const line = urlLine(url)
  return db.oneFirst(sql.type(blockedRow)`
    with asked as (
      select ${about === 'host'} and not exists (select from origins where origin = ${line}) for_host
    ), blocked as (
      insert into origins (origin, next_at, blocked_until, asked_status, asked_seconds)
      select line, now(), now() + least(${retryAfterSeconds}::float8, ${MAX_PAUSE_SECONDS}) * interval '1 second',
             ${status}, ${retryAfterSeconds}::float8
      from (select ${line} line union all select ${url.origin} from asked where for_host) lines
      order by line
      on conflict (origin) do update set blocked_until = greatest(origins.blocked_until, excluded.blocked_until),
        asked_status = excluded.asked_status, asked_seconds = excluded.asked_seconds
    )
    select case when for_host then ${url.origin} else ${line} end line from asked`)
}

const turnRow = z.object({
  /** In the batch. */
  place: z.number(),
  line: z.string(),
  taken: z.boolean(),
  wait_ms: z.number(),
  blocked_seconds: z.number().nullable(),
  asked_status: z.int().nullable(),
  asked_seconds: z.number().nullable(),
})

type Turn = z.output<typeof turnRow>

interface AskedTurn {
  origin: string
  urlLine: string
  visit: string
  jobKey: string
  lane: Lane | undefined
}

/** All batches lock their origins in the same order, so that they cannot deadlock. */
async function takeTurns(
  db: Database,
  asked: AskedTurn[],
  { concurrency, spacingMs, longMs }: Required<OriginLimits>,
): Promise<Turn[]> {
  const rows = await db.any(sql.prepared('take_origin_turns', turnRow)`
    select place, line, taken, wait_ms, blocked_seconds, asked_status, asked_seconds
    from (
      select origin, url_line, visit, job_key, payer, is_free, place from unnest(
        ${column(asked, 'text', (one) => one.origin)}, ${column(asked, 'text', (one) => one.urlLine)},
        ${column(asked, 'uuid', (one) => one.visit)}, ${column(asked, 'text', (one) => one.jobKey)},
        ${column(asked, 'text', (one) => payerOf(one.lane))}, ${column(asked, 'bool', (one) => one.lane?.isFree === true)})
        with ordinality as t (origin, url_line, visit, job_key, payer, is_free, place)
      order by origin, place
    ) asked, lateral take_origin_turn(
      asked.origin, url_line, visit, job_key, ${concurrency}, ${spacingMs}, ${MAX_WAIT_MS}, ${VISIT_SECONDS},
      payer, is_free, ${freeTurns(concurrency)}, ${longMs / 1000}::float8)`)
  return rows.toSorted((one, other) => one.place - other.place)
}

/** The milliseconds until a turn begins. Throws OriginBusyError when there is none. */
function readTurn(url: URL, turn: Turn, lane: Lane | undefined): number {
  if (turn.taken) return turn.wait_ms
  const { line, wait_ms, blocked_seconds, asked_status, asked_seconds } = turn
  if (blocked_seconds !== null && blocked_seconds > 0)
    throw new OriginBusyError(
      line,
      Math.ceil(blocked_seconds),
      { host: url.hostname, status: asked_status ?? 0, seconds: asked_seconds ?? 0 },
      { lane },
    )
  throw new OriginBusyError(line, wait_ms > MAX_WAIT_MS ? Math.ceil(wait_ms / 1000) : LINE_SECONDS, null, { lane })
}

/** Deletes origins without a visit for an hour, and visits whose worker died. */
export async function forgetOrigins(db: Database): Promise<void> {
  await db.query(sql.type(nothing)`delete from origin_visits where until < now() - interval '1 minute'`)
  await db.query(sql.type(nothing)`
    delete from origins where origin in (
      select origin from origins o
      where next_at < now() - interval '1 hour' and coalesce(blocked_until < now() - interval '1 hour', true)
        and not exists (select from origin_waits w where w.origin = o.origin)
      for update skip locked)`)
}

/** Wakes every line that has jobs, so that the turns of killed workers are used. */
export async function recallLines(db: Database, origins: Pick<Origins, 'wake'>): Promise<void> {
  const lines = await db.anyFirst(sql.type(z.object({ origin: z.string() }))`select distinct origin from origin_waits`)
  for (const line of lines) await origins.wake(line)
}
