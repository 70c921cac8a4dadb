// Where Stripe tells us of events, and the pages around a checkout.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireProvider } from '../billing/configured-provider.ts'
import { type HandledEvent, handleEvent } from '../billing/events.ts'
import { SIMULATED_ACTIONS, type Simulation } from '../billing/provider.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { cancelPage, noPage, PAGE_HEADERS, simulatedPage, successPage } from './checkout-pages.ts'

/** Far above any event, whose largest part is an invoice with its lines. */
const MAX_EVENT_BYTES = 262_144
const MAX_FORM_BYTES = 1024
/** `t=` and one signature or more: what has another form is refused before its body is read. */
const SIGNATURE_FORM = /^t=\d{1,12}(,[a-z0-9]+=[0-9a-f]+)+$/

export async function mountBilling(app: FastifyInstance, api: Api) {
  await app.register(async (raw) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    // Not counted against the address: a limit would lose events, and a forgery costs us one digest and no query.
    raw.post('/v1/stripe/webhook', {
      bodyLimit: MAX_EVENT_BYTES,
      config: { operation: 'stripe_webhook' },
      onRequest: async (request) => void signatureOf(request),
      handler: (request) => takeEvent(request, api),
    })
  })
  await app.register(async (forms) => {
    forms.removeAllContentTypeParsers()
    forms.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, new URLSearchParams(body as string)),
    )
    forms.addHook('onRequest', (request) => api.limits.spend(request.ip))
    forms.get('/checkout/success', { config: { operation: 'checkout_page' } }, (_request, reply) =>
      show(reply, 200, successPage()),
    )
    forms.get('/checkout/cancel', { config: { operation: 'checkout_page' } }, (_request, reply) =>
      show(reply, 200, cancelPage()),
    )
    forms.get('/checkout/:token', { config: { operation: 'checkout_page' } }, (request, reply) =>
      showSimulated(request, reply, api),
    )
    forms.post('/checkout/:token', {
      bodyLimit: MAX_FORM_BYTES,
      config: { operation: 'checkout_page', bodyType: 'application/x-www-form-urlencoded' },
      handler: (request, reply) => takeClick(request, reply, api),
    })
  })
}

/** 2xx only when the event is worked on to its end, or is no concern of ours: after anything else Stripe repeats it. */
async function takeEvent(request: FastifyRequest, api: Api) {
  const provider = requireProvider(api)
  if (provider.name !== 'stripe') throw new AppError('not_found', 'Subscriptions are simulated here, without Stripe.')
  const event = provider.readEvent(request.body as Buffer, signatureOf(request), api.now())
  const { outcome } = noteChange(api, await handleEvent(api, provider, event))
  return { received: true, outcome }
}

function signatureOf({ headers }: FastifyRequest): string {
  const signature = headers['stripe-signature']
  if (typeof signature === 'string' && SIGNATURE_FORM.test(signature)) return signature
  throw new AppError('invalid_request', 'Stripe-Signature is missing or not one.')
}

/** An account whose tier has moved is not to meet the old one in this process. */
function noteChange(api: Api, received: HandledEvent): HandledEvent {
  if (received.change) api.callers.clear()
  return received
}

async function showSimulated(request: FastifyRequest, reply: FastifyReply, { billing }: Api) {
  const page = billing?.name === 'simulation' ? await billing.findPage(tokenOf(request)) : null
  return page ? show(reply, 200, simulatedPage(page)) : show(reply, 404, noPage())
}

async function takeClick(request: FastifyRequest, reply: FastifyReply, api: Api) {
  const { billing } = api
  const page = billing?.name === 'simulation' ? await billing.findPage(tokenOf(request)) : null
  if (billing?.name !== 'simulation' || !page) return show(reply, 404, noPage())
  const given = request.body instanceof URLSearchParams ? request.body.get('action') : null
  const action = SIMULATED_ACTIONS.find((known) => known === given)
  if (!action) throw new AppError('invalid_request', `action must be one of ${SIMULATED_ACTIONS.join(', ')}.`)
  return play(billing, action, request, reply, api)
}

async function play(
  billing: Simulation,
  action: (typeof SIMULATED_ACTIONS)[number],
  request: FastifyRequest,
  reply: FastifyReply,
  api: Api,
) {
  const event = await billing.act(tokenOf(request), action)
  if (event) noteChange(api, await handleEvent(api, billing, event))
  if (action === 'cancel') return reply.code(303).headers(PAGE_HEADERS).header('location', '/checkout/cancel').send()
  // What was clicked twice, or came to nothing, says so on its own page.
  const location = event ? '/checkout/success' : `/checkout/${tokenOf(request)}`
  return reply.code(303).headers(PAGE_HEADERS).header('location', location).send()
}

function tokenOf(request: FastifyRequest): string {
  return (request.params as { token: string }).token
}

function show(reply: FastifyReply, status: number, html: string) {
  return reply.code(status).headers(PAGE_HEADERS).send(html)
}
