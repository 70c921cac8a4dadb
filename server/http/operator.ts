// The routes of the operator's dashboard. Each but the sign-in needs a session; forms carry its token. Pages in browsers of other sites
// may neither read nor send anything here.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { singleFlight } from '../db/single-flight.ts'
import { AppError } from '../errors.ts'
import { disconnected } from '../http-request.ts'
import { setDisabled } from '../operate/accounts.ts'
import { ACTIONS, countRefusal, isSignedOut, listActions, readRefusals, recorded } from '../operate/actions.ts'
import { listUndelivered, redeliverAsOperator } from '../operate/alerts.ts'
import { askDrain } from '../operate/drain.ts'
import { listDeadJobs, redrive } from '../operate/jobs.ts'
import { pageRequests } from '../operate/request-pages.ts'
import { cancelAsOperator, retryRequest, showRequest } from '../operate/requests.ts'
import { readSpending } from '../operate/spending.ts'
import { readStatus } from '../operate/status.ts'
import { timelineOf } from '../operate/timeline.ts'
import { countRefused, listFailingHosts, readWeek } from '../operate/week.ts'
import { openSite, type Site } from '../pages/layout.ts'
import { closedPage, signInPage } from '../pages/operator/operator-frame.ts'
import { type Dashboard, operatorPage } from '../pages/operator/operator-page.ts'
import {
  operatorActionsPage,
  operatorRequestPage,
  operatorRequestsPage,
  type Question,
  questionPage,
} from '../pages/operator/operator-requests-page.ts'
import { findUnresolved } from '../payments/ledger.ts'
import { states } from '../verification/request.ts'
import { openFeed } from './operator-feed.ts'
import {
  CLOSING_COOKIE,
  findSession,
  isOperatorToken,
  openSession,
  requireForm,
  requireSameOrigin,
  type Session,
} from './operator-session.ts'
import { sendPage } from './page-answers.ts'

const FORM_TYPE = 'application/x-www-form-urlencoded'
const MAX_FORM_BYTES = 4096
/** Rows of a page of requests, and of the log. */
const PAGE = 50
const LISTED = 20
/** Milliseconds for which results are reused: the current state, and the week. */
const KEEP_MS = { now: 1000, week: 30_000 }
const PRIVATE = { forms: true, secret: true } as const

type Query = FastifyRequest<{ Querystring: Record<string, unknown>; Params: Record<string, unknown> }>

export async function mountOperator(app: FastifyInstance, api: Api) {
  await app.register(async (forms) => {
    forms.removeAllContentTypeParsers()
    forms.addContentTypeParser<string>(FORM_TYPE, { parseAs: 'string' }, (_request, body, done) =>
      done(null, new URLSearchParams(body)),
    )
    forms.addHook('onRequest', (request) => api.limits.spend(request.ip))
    mountSignIn(forms, api)
    mountDashboard(forms, api)
  })
}

const route = (operation: string) => ({
  config: { operation, cors: false as const, bodyType: FORM_TYPE, form: '/operator' },
  bodyLimit: MAX_FORM_BYTES,
})
const fieldsOf = ({ body }: FastifyRequest) => (body instanceof URLSearchParams ? body : new URLSearchParams())

function mountSignIn(app: FastifyInstance, api: Api) {
  app.post('/operator/sign-in', route('operator_sign_in'), async (request, reply) => {
    const { operatorToken } = api.config
    const site = await openSite(api)
    if (!operatorToken) return sendPage(reply, closedPage(site), { ...PRIVATE, status: 404 })
    requireSameOrigin(request)
    await api.limits.spendSignIn(request.ip)
    const isRight = isOperatorToken(fieldsOf(request).get('token') ?? '', operatorToken)
    const { cookie, session } = openSession(api)
    if (!isRight) {
      await countRefusal(api.db)
      api.log.warn({ event: 'operator_refused' })
      return sendPage(reply, signInPage(site, { problem: 'That is not the token.' }), { ...PRIVATE, status: 403 })
    }
    await recorded(api.db, { action: 'sign_in', subject: '', session: session.id }, async () => 'signed_in')
    return reply
      .code(303)
      .headers({ location: '/operator?signed-in', 'set-cookie': cookie, 'cache-control': 'no-store' })
      .send()
  })
  app.post('/operator/sign-out', route('operator_sign_out'), async (request, reply) => {
    const session = await findSession(api, request)
    if (session) {
      requireForm(session, fieldsOf(request), request)
      await recorded(api.db, { action: 'sign_out', subject: '', session: session.id }, async () => 'signed_out')
    }
    return reply
      .code(303)
      .headers({ location: '/operator', 'set-cookie': CLOSING_COOKIE, 'cache-control': 'no-store' })
      .send()
  })
}

function mountDashboard(app: FastifyInstance, api: Api) {
  const { db } = api
  const now = singleFlight(() => readNow(api), KEEP_MS.now)
  const week = singleFlight(() => readWeekly(api), KEEP_MS.week)
  const feed = openFeed(async () => (await now()).status)

  /** Runs the page with a session; without one the browser is sent to the sign-in. */
  const page = (
    path: string,
    name: string,
    show: (session: Session, site: Site, request: Query) => Promise<string | null>,
  ) =>
    app.get<{ Querystring: Query['query']; Params: Query['params'] }>(path, route(name), async (request, reply) => {
      const session = await findSession(api, request)
      if (!session) return reply.code(303).headers({ location: '/operator', 'cache-control': 'no-store' }).send()
      const text = await show(session, await openSite(api), request)
      if (text === null) throw new AppError('not_found', 'There is no such request.')
      return sendPage(reply, text, PRIVATE)
    })

  app.get<{ Querystring: Record<string, unknown> }>('/operator', route('operator_page'), async (request, reply) => {
    const site = await openSite(api)
    if (!api.config.operatorToken) return sendPage(reply, closedPage(site), { ...PRIVATE, status: 404 })
    const session = await findSession(api, request)
    if (!session) return sendPage(reply, signInPage(site, { unkept: 'signed-in' in request.query }), PRIVATE)
    return sendPage(reply, operatorPage(site, session.formToken, { ...(await now()), ...(await week()) }), PRIVATE)
  })
  page('/operator/requests', 'operator_requests', async ({ formToken }, site, { query }) => {
    const text = typeof query.q === 'string' ? query.q.trim().slice(0, 200) : ''
    const state = z.enum(states).safeParse(query.state).data ?? null
    const after = typeof query.after === 'string' ? readPosition(query.after) : undefined
    const found = await pageRequests(db, { text, limit: PAGE, ...(state && { state }), ...(after && { after }) })
    return operatorRequestsPage(site, formToken, { text, state, page: found, isFirst: !after })
  })
  page('/operator/requests/:id', 'operator_request', async ({ formToken }, site, { params }) => {
    const id = z.uuid().safeParse(params.id)
    const request = id.success ? await showRequest(db, id.data) : null
    return request && operatorRequestPage(site, formToken, { request, timeline: timelineOf(request) })
  })
  page('/operator/actions', 'operator_actions', async ({ formToken }, site, { query }) => {
    const before = /^\d{1,15}$/.test(String(query.before)) ? Number(query.before) : undefined
    const found = await listActions(db, PAGE + 1, before)
    const actions = found.slice(0, PAGE)
    const latest = before === undefined && query.done === String(actions[0]?.action_id) ? actions[0] : undefined
    const done = latest?.outcome ? { action: latest.action, outcome: latest.outcome } : null
    return operatorActionsPage(site, formToken, {
      actions,
      refusals: await readRefusals(db),
      done,
      next: found.length > PAGE ? (actions.at(-1)?.action_id ?? null) : null,
    })
  })
  page('/operator/act', 'operator_question', async ({ formToken }, site, { query }) => {
    const question = readQuestion(query)
    const isOfRequest = question.action === 'retry_request' || question.action === 'cancel_request'
    const id = z.uuid().safeParse(question.subject)
    const request = isOfRequest && id.success ? await showRequest(db, id.data) : null
    if (isOfRequest && !request) return null
    return questionPage(site, formToken, question, request?.state ?? null)
  })

  app.post('/operator/act', route('operator_act'), async (request, reply) => {
    const session = await findSession(api, request)
    if (!session) return reply.code(303).headers({ location: '/operator', 'cache-control': 'no-store' }).send()
    const fields = fieldsOf(request)
    requireForm(session, fields, request)
    const question = readQuestion(Object.fromEntries(fields))
    await recorded(db, { ...question, session: session.id }, () => act(api, question))
    const [latest] = await listActions(db, 1)
    return reply
      .code(303)
      .headers({ location: `/operator/actions?done=${latest?.action_id}`, 'cache-control': 'no-store' })
      .send()
  })
  app.get('/operator/events', route('operator_events'), (request, reply) => sendEvents(request, reply, api, feed))
}

/** Now and what is open. */
async function readNow({
  db,
  config,
}: Api): Promise<Pick<Dashboard, 'status' | 'unresolved' | 'undelivered' | 'deadJobs'>> {
  const [status, unresolved, undelivered, deadJobs] = await Promise.all([
    readStatus(db, config),
    findUnresolved(db),
    listUndelivered(db, LISTED),
    listDeadJobs(db, LISTED),
  ])
  return { status, unresolved, undelivered, deadJobs }
}

async function readWeekly({
  db,
  now,
}: Api): Promise<Pick<Dashboard, 'week' | 'spending' | 'failingHosts' | 'refused'>> {
  const [week, spending, failingHosts, refused] = await Promise.all([
    readWeek(db, now()),
    readSpending(db, now()),
    listFailingHosts(db, LISTED),
    countRefused(db),
  ])
  return { week, spending, failingHosts, refused }
}

function readPosition(text: string) {
  const [, created_at = '', id = ''] =
    /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?) ([0-9a-f-]{36})$/.exec(text) ?? []
  if (!z.uuid().safeParse(id).success) throw new AppError('invalid_request', 'after: is not a value from this page.')
  return { created_at, id }
}

const question = z.object({
  action: z.enum(ACTIONS).exclude(['sign_in', 'sign_out']),
  subject: z.string().trim().min(1).max(200),
})

function readQuestion(given: Record<string, unknown>): Question {
  const parsed = question.safeParse(given)
  if (!parsed.success) throw new AppError('invalid_request', 'There is no such action.')
  return parsed.data
}

/** Returns the outcome as it is logged. */
async function act({ db, config }: Api, { action, subject }: Question): Promise<string> {
  const isRequest = z.uuid().safeParse(subject).success
  switch (action) {
    case 'retry_request':
      return isRequest ? retryRequest(db, subject) : 'not_found'
    case 'cancel_request':
      return isRequest ? cancelAsOperator(db, subject, config.maxInFlightPerPayer) : 'not_found'
    case 'redeliver_alert':
      return redeliverAsOperator(db, subject)
    case 'redrive_job':
      return /^\d{1,18}$/.test(subject) && (await redrive(db, subject)) > 0 ? 'runs_again' : 'not_found'
    case 'drain_process':
    case 'resume_process':
      return askDrain(db, subject, action === 'drain_process')
    case 'disable_account':
    case 'enable_account': {
      const disables = action === 'disable_account'
      return (await setDisabled(db, subject, disables)) ? (disables ? 'disabled' : 'enabled') : 'not_found'
    }
  }
}

/** Ends when the browser leaves, the session ends or is signed out, or the process drains. */
async function sendEvents(request: FastifyRequest, reply: FastifyReply, api: Api, feed: ReturnType<typeof openFeed>) {
  const session = await findSession(api, request)
  if (!session) throw new AppError('forbidden', 'The session has ended. Sign in again.')
  const ends = AbortSignal.timeout(Math.max(0, session.expiresMs - api.now()))
  const signal = AbortSignal.any([disconnected(reply.raw), api.draining, ends])
  const events = feed.listen(signal)
  if (!events) throw new AppError('capacity_exceeded', 'Too many dashboards are open.')
  return reply
    .headers({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-accel-buffering': 'no',
    })
    .send(Readable.from(whileSignedIn(api, session, events)))
}

/** Checks the session before each event, keep-alive events included. */
async function* whileSignedIn({ db }: Api, { id }: Session, events: AsyncGenerator<string>) {
  for await (const event of events) {
    if (await isSignedOut(db, id).catch(() => false)) return
    yield event
  }
}
