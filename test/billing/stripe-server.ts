// A stand-in for Stripe's API over real HTTP, on the records of stripe-world.ts: keys, idempotency, pages of two, expansion to
// four levels, and calls that fail before or after they take effect. It validates requests as Stripe does.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { buildWorld, type Session, type World } from './stripe-world.ts'

export const SECRET_KEY = 'sk_test_51StandIn00000000000000'
export const WEBHOOK_SECRET = 'whsec_standin0000000000000000000'
export const PRICES = { dev: 'price_dev', pro: 'price_pro', oldDev: 'price_dev_2024', other: 'price_of_something_else' }

/** `before`: the call fails without effect. `after`: it takes effect, but its answer is lost. */
export interface Fault {
  match: RegExp
  how: 'drop before' | 'drop after' | '500 before' | '500 after'
  times: number
}

export interface StripeServer extends AsyncDisposable {
  url: string
  world: World
  /** Every call, as `POST /v1/customers`. */
  calls: string[]
  faults: Fault[]
  /** Holds the answer of the next matching call; the answer shows the records as they were when the call came. */
  hold(match: RegExp): { reached: Promise<void>; release(): void }
  env: Record<string, string>
}

type Params = { [name: string]: Params } | string
interface Answer {
  status: number
  body: unknown
}

/** Smaller than the requested page, as Stripe may answer, so that every list takes several calls. */
const PAGE = 2

export async function openStripeServer(now: () => number = Date.now): Promise<StripeServer> {
  const world = buildWorld(Object.values(PRICES), now)
  const kept = new Map<string, { request: string; answer: Answer }>()
  const calls: string[] = []
  const faults: Fault[] = []
  const holds: { match: RegExp; reached: () => void; released: Promise<void> }[] = []

  const server = createServer(async (request, response) => {
    const body = await text(request)
    const call = `${request.method} ${request.url}`
    calls.push(`${request.method} ${new URL(call.slice(call.indexOf('/')), 'http://stripe').pathname}`)
    const fault = takeFault(faults, call)
    if (fault === 'drop before') return void request.socket.destroy()
    // A copy: records go on changing while an answer is held.
    const answer = structuredClone(fault === '500 before' ? failure(500, 'api_error') : perform(request, body))
    const held = holds.findIndex(({ match }) => match.test(call))
    if (held >= 0) {
      const [{ reached, released } = { reached() {}, released: null }] = holds.splice(held, 1)
      reached()
      await released
    }
    if (fault === 'drop after') return void request.socket.destroy()
    send(response, fault === '500 after' ? failure(500, 'api_error') : answer, fault !== undefined)
  })

  function perform(request: IncomingMessage, body: string): Answer {
    if (request.headers.authorization !== `Bearer ${SECRET_KEY}`) return failure(401, 'invalid_request_error')
    const key = request.headers['idempotency-key']
    if (request.method !== 'POST' || typeof key !== 'string') return route(world, request, body)
    const asked = `${request.url} ${body}`
    const before = kept.get(key)
    if (before && before.request !== asked) return failure(400, 'idempotency_error')
    const answer = before?.answer ?? route(world, request, body)
    // A call that fails validation did not begin, so its key is not kept.
    if (answer.status < 400 || answer.status >= 500) kept.set(key, { request: asked, answer: structuredClone(answer) })
    return answer
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    world,
    calls,
    faults,
    hold(match) {
      const reached = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      holds.push({ match, reached: reached.resolve, released: released.promise })
      return { reached: reached.promise, release: released.resolve }
    },
    env: {
      STRIPE_SECRET_KEY: SECRET_KEY,
      STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
      STRIPE_PRICE_DEV: `${PRICES.dev},${PRICES.oldDev}`,
      STRIPE_PRICE_PRO: PRICES.pro,
      STRIPE_API_BASE: url,
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

function takeFault(faults: Fault[], call: string): Fault['how'] | undefined {
  const fault = faults.find(({ match, times }) => times > 0 && match.test(call))
  if (fault) fault.times--
  return fault?.how
}

function failure(status: number, type: string, more: object = {}): Answer {
  return { status, body: { error: { type, message: type, ...more } } }
}

function send(response: ServerResponse, { status, body }: Answer, final: boolean) {
  // Otherwise the SDK would repeat the failed call and get its answer.
  const headers = final && status >= 500 ? { 'stripe-should-retry': 'false' } : {}
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_standin', ...headers })
  response.end(JSON.stringify(body))
}

const missing = (what: string, id: string, param = 'id') =>
  failure(404, 'invalid_request_error', { code: 'resource_missing', param, message: `No such ${what}: '${id}'` })
const ok = (body: unknown): Answer => ({ status: 200, body })

function route(world: World, request: IncomingMessage, body: string): Answer {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stripe')
  const params = parse(request.method === 'GET' ? searchParams : new URLSearchParams(body))
  for (const path of Object.values((params.expand as Record<string, string>) ?? {}))
    if (path.split('.').length > 4) return failure(400, 'invalid_request_error', { message: 'too deep' })
  const [, , ...parts] = pathname.split('/')
  const [resource, id = '', verb] = parts[0] === 'checkout' || parts[0] === 'billing_portal' ? parts.slice(1) : parts
  const name = `${request.method} ${resource}${id ? '/id' : ''}${verb ? `/${verb}` : ''}`
  return handlers[name]?.(world, params, id) ?? failure(404, 'invalid_request_error', { message: name })
}

type Given = Record<string, Params>
const handlers: Record<string, (world: World, params: Given, id: string) => Answer> = {
  'POST customers': ({ customers, makeId }, { metadata }) => {
    const customer = { id: makeId('cus'), object: 'customer' as const, metadata: metadata as Record<string, string> }
    customers.set(customer.id, customer)
    return ok(customer)
  },
  'GET customers/id': ({ customers }, _params, id) => {
    const found = customers.get(id)
    if (!found) return missing('customer', id)
    return ok(found.deleted ? { id, object: 'customer', deleted: true } : found)
  },
  'GET prices/id': ({ prices }, _params, id) => {
    if (!prices.includes(id)) return missing('price', id, 'price')
    const recurring = { interval: 'month', interval_count: 1 }
    const amount = id === PRICES.pro ? 9900 : 2900
    return ok({
      id,
      object: 'price',
      product: `prod_${id}`,
      active: true,
      currency: 'usd',
      unit_amount: amount,
      recurring,
    })
  },
  'POST sessions': (world, params) => (params.mode ? openSession(world, params) : openPortal(world, params)),
  'GET sessions/id': ({ sessions, customers }, params, id) => {
    const found = sessions.get(id)
    if (!found) return missing('checkout.session', id)
    return ok(params.expand ? { ...found, customer: customers.get(found.customer) } : found)
  },
  'POST sessions/id/expire': ({ sessions }, _params, id) => {
    const session = sessions.get(id)
    if (session?.status !== 'open') return failure(400, 'invalid_request_error', { message: 'not open' })
    Object.assign(session, { status: 'expired', url: null })
    return ok(session)
  },
  'GET subscriptions': ({ subscriptions, customers }, params) => {
    if (params.customer && !customers.has(String(params.customer)))
      return missing('customer', String(params.customer), 'customer')
    const ended = ['canceled', 'incomplete_expired']
    const found = [...subscriptions.values()].filter(
      ({ customer, status, items }) =>
        (!params.customer || customer === params.customer) &&
        (!params.price || items.data.some(({ price }) => price.id === params.price)) &&
        (params.status === 'all' || !ended.includes(status)),
    )
    return page(found.reverse(), params)
  },
  'GET subscriptions/id': ({ subscriptions }, _params, id) => {
    const found = subscriptions.get(id)
    return found ? ok(found) : missing('subscription', id)
  },
  'GET invoice_payments': ({ invoices }, params) => {
    const invoice = invoices.get(String(params.invoice))
    if (!invoice) return missing('invoice', String(params.invoice), 'invoice')
    const expand = Object.values((params.expand as Record<string, string>) ?? {})
    const deep = expand.includes('data.payment.payment_intent.latest_charge')
    const payments = invoice.paidBy.map((charge) => ({
      id: `inpay_${charge.id}`,
      object: 'invoice_payment',
      status: 'paid',
      payment: {
        type: 'payment_intent',
        payment_intent: deep
          ? { id: `pi_${charge.id}`, object: 'payment_intent', latest_charge: charge }
          : `pi_${charge.id}`,
      },
    }))
    return page(payments, params)
  },
  'GET charges/id': ({ charges }, _params, id) => {
    const found = charges.get(id)
    return found ? ok(found) : missing('charge', id)
  },
  'GET disputes': ({ disputes }, params) =>
    page(
      [...disputes.values()].filter(({ charge }) => charge === params.charge),
      params,
    ),
  'GET configurations': ({ configurations }, params) => page(configurations, params),
  'POST configurations': ({ configurations, makeId }, params) => {
    const made = { ...params, id: makeId('bpc'), object: 'billing_portal.configuration', active: true }
    configurations.push(made)
    return ok(made)
  },
  'GET webhook_endpoints': ({ endpoints }, params) => page(endpoints, params),
}

function openSession(world: World, params: Given): Answer {
  const customer = world.customers.get(String(params.customer))
  if (!customer || customer.deleted) return missing('customer', String(params.customer), 'customer')
  const lifetime = Number(params.expires_at) - world.seconds()
  if (lifetime < 1800 || lifetime > 86_400) return failure(400, 'invalid_request_error', { param: 'expires_at' })
  const items = Object.values(params.line_items ?? {}) as unknown as Session['line_items']
  if (items.some(({ price }) => !world.prices.includes(price))) return missing('price', items[0]?.price ?? '', 'price')
  const id = world.makeId('cs_test')
  const session: Session = {
    ...(params as unknown as Session),
    id,
    object: 'checkout.session',
    status: 'open',
    url: `https://checkout.stripe.test/c/pay/${id}`,
    expires_at: Number(params.expires_at),
    line_items: items,
    subscription: null,
  }
  world.sessions.set(id, session)
  return ok(session)
}

function openPortal(world: World, params: Given): Answer {
  const customer = world.customers.get(String(params.customer))
  if (!customer || customer.deleted) return missing('customer', String(params.customer), 'customer')
  if (!world.configurations.some(({ id }) => id === params.configuration))
    return failure(400, 'invalid_request_error', { message: 'No configuration provided' })
  const id = world.makeId('bps')
  world.portals.set(id, params)
  return ok({ id, object: 'billing_portal.session', url: `https://billing.stripe.test/p/session/${id}` })
}

function page<T extends { id: string }>(found: T[], params: Given): Answer {
  const start = params.starting_after ? found.findIndex(({ id }) => id === params.starting_after) + 1 : 0
  const size = Math.min(PAGE, Number(params.limit ?? 10))
  return ok({ object: 'list', data: found.slice(start, start + size), has_more: found.length > start + size })
}

/** `a[b][0][c]=d` as the SDK writes it. */
function parse(given: URLSearchParams): Given {
  const params: Given = {}
  for (const [name, value] of given) {
    const path = name.replaceAll(']', '').split('[')
    const last = path.pop() ?? ''
    let at = params
    for (const part of path) {
      at[part] ??= {}
      at = at[part] as Given
    }
    at[last] = value
  }
  return params
}
