// /try: a free look at one page, as one JSON body, as lines of JSON with the stages before it, or for a form as a page. The pages of
// the samples that come with the service.

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problemsOf } from '../../client/page/try/try-form.ts'
import { addressKey } from '../accounts/address-key.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { disconnected, parseJson } from '../http-request.ts'
import { type NonCompleted, SCHEMA_VERSION } from '../interface/result.ts'
import { followLook, type LookEvent, startLook } from '../looks/call.ts'
import type { LookInput } from '../looks/look.ts'
import { findSample } from '../looks/samples.ts'
import { type Call, MAX_WAIT_SECONDS } from '../operation.ts'
import { openSite } from '../pages/layout.ts'
import { samplePage } from '../pages/sample-page.ts'
import { noTryPage, type TryPageParts, tryExamples, tryPage } from '../pages/try-page.ts'
import { failureBody } from '../verification/answer-body.ts'
import { describeCapabilities } from '../verification/offer/capabilities.ts'
import { describeOffer } from '../verification/offer/offer.ts'
import { requireSameOrigin } from './operator-session.ts'
import { asksForHtml, sendPage } from './page-answers.ts'
import { type HttpAnswer, renderVerificationError } from './verification.ts'

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const LINES_TYPE = 'application/x-ndjson'
/** A caller that wants refusals as lines too, with status 200: browsers report every other status as an error of the page. */
const FAILURES_IN_LINES = /application\/x-ndjson *; *failures=lines/

export async function mountTry(app: FastifyInstance, api: Api) {
  const page = (operation: string) => ({
    config: { operation },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  })
  app.get('/try', { ...page('try_page'), config: { operation: 'try_page', cors: false } }, async (request, reply) => {
    if (!api.config.try.enabled) return refuse(request, reply, api)
    return sendPage(reply, tryPage(await openSite(api), await partsOf(api)), { forms: true })
  })
  app.get<{ Params: { name: string } }>('/samples/:name', page('sample_page'), async ({ params }, reply) => {
    const sample = findSample(params.name)
    if (!sample || !api.config.try.enabled) throw new AppError('not_found', 'There is no such sample.')
    return sendPage(reply, samplePage(await openSite(api), sample))
  })
  await app.register(async (forms) => {
    forms.addContentTypeParser(FORM_TYPE, { parseAs: 'string' }, (_request, body, done) =>
      done(null, new URLSearchParams(String(body))),
    )
    forms.post('/try', {
      config: { operation: 'try', bodyType: JSON_TYPE, form: '', cors: false },
      onRequest: (request) => api.limits.spend(request.ip),
      handler: (request, reply) =>
        request.body instanceof URLSearchParams
          ? answerForm(request.body, request, reply, api)
          : answerLook(request, reply, api),
    })
  })
}

/** The form of a browser without a script: the answer is a page, with the status that JSON would have. */
async function answerForm(fields: URLSearchParams, request: FastifyRequest, reply: FastifyReply, api: Api) {
  requireSameOrigin(request)
  if (!api.config.try.enabled) return refuse(request, reply, api)
  const site = await openSite(api)
  const example = tryExamples(site).find(({ name }) => name === fields.get('example'))
  const given = {
    source_url: example?.source_url ?? fields.get('source_url')?.trim() ?? '',
    claim: example?.claim ?? fields.get('claim')?.replaceAll('\r\n', '\n') ?? '',
  }
  const parts = { ...(await partsOf(api)), given }
  const show = (status: number, more: Partial<TryPageParts>, headers = {}) =>
    sendPage(reply, tryPage(site, { ...parts, ...more }), { forms: true, secret: true, status, headers })
  const problems = problemsOf(given)
  if (Object.keys(problems).length > 0) return show(400, { problems })
  const { status, headers, body } = await outcomeOfForm(given, request, reply, api)
  const { 'content-type': _json, ...rest } = headers
  if (body instanceof Buffer)
    return show(status, { state: { kind: 'completed', answer: parseJson(body) as Record<string, unknown> } }, rest)
  const { code, message, retryable } = (body as NonCompleted).error
  return show(status, { state: { kind: 'failed', code, message, retryable } }, rest)
}

async function outcomeOfForm(given: LookInput, request: FastifyRequest, reply: FastifyReply, api: Api) {
  try {
    const call = callOf(request, reply, api)
    return renderOutcome(await outcomeOf(followLook(await startLook(given, call), call)))
  } catch (error) {
    return renderVerificationError(error)
  }
}

async function partsOf(api: Api): Promise<TryPageParts> {
  const { closed } = describeOffer(api.config)
  return { capabilities: await describeCapabilities(api), perDay: api.config.try.perAddress, closed }
}

/** Where nothing can be tried: a visitor reads what to do instead, and a program the setting. */
async function refuse({ headers }: FastifyRequest, reply: FastifyReply, api: Api) {
  if (!asksForHtml(headers.accept)) throw new AppError('not_found', 'Nothing can be tried here: TRY_ENABLED is false.')
  const { closed } = describeOffer(api.config)
  return sendPage(reply, noTryPage(await openSite(api), await describeCapabilities(api), closed !== null), {
    status: 404,
  })
}

async function answerLook(request: FastifyRequest, reply: FastifyReply, api: Api) {
  if (!FAILURES_IN_LINES.test(request.headers.accept ?? '')) return answerWithStatus(request, reply, api)
  try {
    return await answerWithStatus(request, reply, api)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return sendLines(reply, [`${JSON.stringify(failureBody(error))}\n`])
  }
}

async function answerWithStatus(request: FastifyRequest, reply: FastifyReply, api: Api) {
  if (request.body === undefined && !request.headers['content-type']?.startsWith(JSON_TYPE))
    throw new AppError('unsupported_media_type', `Content-Type must be ${JSON_TYPE}.`)
  const call = callOf(request, reply, api)
  const events = followLook(await startLook(request.body, call), call)
  if (!request.headers.accept?.includes(LINES_TYPE)) return write(reply, renderOutcome(await outcomeOf(events)))
  const first = await events.next()
  // What is known at once has its own status.
  if (!first.done && first.value.kind === 'failed') {
    if (FAILURES_IN_LINES.test(request.headers.accept)) throw first.value.error
    return write(reply, renderOutcome(first.value))
  }
  return sendLines(reply, linesOf(first, events))
}

const sendLines = (reply: FastifyReply, lines: Iterable<string> | AsyncIterable<string>) =>
  reply
    .headers({ 'content-type': `${LINES_TYPE}; charset=utf-8`, 'cache-control': 'no-store' })
    .send(Readable.from(lines))

/** A call that waits as long as it may, if it gets a seat. */
function callOf({ ip }: FastifyRequest, reply: FastifyReply, api: Api): Call {
  const seat = api.seats.take(addressKey(ip))
  reply.raw.once('close', () => seat?.[Symbol.dispose]())
  const options = { waitSeconds: seat ? MAX_WAIT_SECONDS : 0, signal: disconnected(reply.raw) }
  return { api, credentials: { address: ip }, options }
}

/** What is to be answered at the end. */
async function outcomeOf(events: AsyncIterable<LookEvent>): Promise<LookEvent> {
  let last: LookEvent = { kind: 'failed', error: new AppError('cancelled', 'The caller disconnected.') }
  for await (const event of events) last = event
  return last
}

/** A line for each event. A failure after the first line is a line too: the status was sent before. */
async function* linesOf(
  first: IteratorResult<LookEvent, void>,
  rest: AsyncIterable<LookEvent>,
): AsyncGenerator<string> {
  if (first.done) return
  yield lineOf(first.value)
  try {
    for await (const event of rest) yield lineOf(event)
  } catch (error) {
    yield `${JSON.stringify(failureBody(error))}\n`
  }
}

function lineOf(event: LookEvent): string {
  if (event.kind === 'stage') return `${JSON.stringify({ stage: event.stage })}\n`
  const { body } = renderOutcome(event)
  return body instanceof Buffer ? `${body.toString('utf8')}\n` : `${JSON.stringify(body)}\n`
}

function renderOutcome(event: LookEvent): HttpAnswer {
  const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
  switch (event.kind) {
    case 'completed':
      return { status: 200, headers, body: event.bytes }
    case 'failed':
      return renderVerificationError(event.error)
    case 'pending':
      return {
        status: 202,
        headers: { ...headers, 'retry-after': String(event.retryAfterSeconds) },
        body: pendingBody(event.message),
      }
    case 'stage':
      throw new Error('a stage is no outcome')
  }
}

function pendingBody(message: string): NonCompleted {
  return { schema_version: SCHEMA_VERSION, status: 'pending', error: { code: 'processing', message, retryable: true } }
}

const write = (reply: FastifyReply, { status, headers, body }: HttpAnswer) =>
  reply.code(status).headers(headers).send(body)
