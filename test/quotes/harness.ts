// Quote-check harness: the API process, its site, an account, and a queue that the test works by hand.
import { randomUUID } from 'node:crypto'
import { openWork, type Work, type WorkOverrides } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
import { openQueue, type Queue } from '../queue.ts'
import type { System } from '../system.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
}

export interface Reader {
  handle: string
  key: string
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Asks for a check of a page of the site. */
  check(path: string, quotes: string[], headers?: Record<string, string>): Promise<Answer>
  used(): Promise<{ pages: number; inFlight: number }>
}

export interface QuoteHarness extends AsyncDisposable {
  front: ApiHarness
  work: Work
  queue: Queue
  register(tier?: 'free' | 'dev' | 'pro'): Promise<Reader>
}

/** No limit on turns at one origin. */
const originLimits = { concurrency: 10_000, spacingMs: 0 }

export async function openQuoteHarness(
  env: Record<string, string> = {},
  overrides: WorkOverrides = {},
): Promise<QuoteHarness> {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness(env))
  const work = opened.use(await openWork(front.core, { originLimits, ...overrides }))
  const queue = opened.use(openQueue(work))
  const closing = opened.move()
  return {
    front,
    work,
    queue,
    register: (tier) =>
      register({ ...front, sql: async (text, values) => (await front.tables.query(text, values)).rows }, tier),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export async function register(
  { url, site, sql }: Pick<System, 'url' | 'site' | 'sql'>,
  tier = 'free',
): Promise<Reader> {
  const handle = `h-${randomUUID()}`
  let key = ''
  const call: Reader['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(url(path), {
      method,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: text === '' ? null : JSON.parse(text) }
  }
  key = (await call('POST', '/v1/register', { handle })).body.api_key
  await sql('update accounts set tier = $1 where handle = $2', [tier, handle])
  return {
    handle,
    key,
    call,
    check: (path, quotes, headers) => call('POST', '/v1/quote-check', { source_url: site.url(path), quotes }, headers),
    async used() {
      const { used } = (await call('GET', '/v1/usage')).body
      return { pages: used.quote_check_pages_today, inFlight: used.quote_checks_in_flight }
    },
  }
}
