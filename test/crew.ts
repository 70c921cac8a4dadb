// Worker processes that crash, and the purchases they crash on.
import { randomUUID } from 'node:crypto'
import type { CompletedResult } from '../server/verification/result.ts'
import { type Child, startChild } from './children.ts'
import type { Aim, Order } from './crash-worker.ts'
import { type Front, outcomeOf, readResult } from './front.ts'
import type { Ledger } from './ledger.ts'
import type { Page } from './site.ts'
import { PAGE, payingFetch } from './system.ts'

export interface Crew extends AsyncDisposable {
  /** A new worker, ready and not yet at work. */
  next(): Promise<Child>
}

/** Workers are started one ahead of their turn, so that nobody waits for a process to load. */
export function openCrew(front: Front): Crew {
  const crew: Child[] = []
  const hire = () => {
    const child = startChild('test/crash-worker.ts', front.env, { ipc: true })
    crew.push(child)
    return child
  }
  let waiting = hire()
  return {
    async next() {
      const child = waiting
      waiting = hire()
      await child.tells('ready')
      return child
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(crew.map((child) => child[Symbol.asyncDispose]()))
    },
  }
}

/** Puts a worker to work, or aims one that is at work already. */
export async function run(child: Child, aim?: Aim) {
  const order = randomUUID()
  child.tell({ do: 'run', order, ...(aim && { aim }) } satisfies Order)
  await child.hears((heard) => heard.told === 'running' && heard.order === order)
}

/** Puts the past an hour back, in place of waiting until a silent worker counts as dead. */
export async function declareDead({ tables }: Front) {
  await tables.query(`update worker_beats set beat_at = beat_at - interval '1 hour'`)
  await tables.query(`
    update graphile_worker._private_jobs set locked_at = locked_at - interval '1 hour' where locked_by is not null`)
}

export interface Purchase {
  key: string
  path: string
  claim: string
  result: Promise<CompletedResult>
}

/** A purchase by a stock client, of a page and a claim of its own, that takes nothing from a cache. */
export function buy(front: Front, page: Page | (() => Page | Promise<Page>) = { body: PAGE }): Purchase {
  const key = randomUUID()
  const path = `/${key}`
  const claim = `The harbour was opened in 1874. (${key})`
  front.site.pages.set(path, page)
  const body = { source_url: front.site.url(path), claim, options: { max_age_seconds: 0 } }
  const asked = front.ask({ key, body, fetch: payingFetch(), headers: { prefer: 'wait=25' } })
  return { key, path, claim, result: asked.then(outcomeOf).then(readResult) }
}

/** What one purchase has cost so far, in things that are not to be done twice. */
export interface Spent {
  fetches: number
  assessments: number
  settles: number
}

export async function spentOn(purchase: Purchase, { site, tables }: Front, ledger: Ledger): Promise<Spent> {
  const { request_id } = await purchase.result
  const { rows } = await tables.query(
    `select payment -> 'identity' ->> 'nonce' nonce from verification_requests where id = $1`,
    [request_id],
  )
  return {
    fetches: site.requests.filter((asked) => asked === purchase.path).length,
    assessments: await ledger.count('assess', purchase.claim),
    settles: await ledger.count('settle', rows[0].nonce),
  }
}
