// The webhook that Stripe sends events to, and the pages around a checkout.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireProvider } from '../billing/configured-provider.ts'
import { type HandledEvent, handleEvent } from '../billing/events.ts'
import { SIMULATED_ACTIONS, type SimulatedAction, type Simulation } from '../billing/provider.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { cancelPage, noCheckoutPage, simulatedPage, successPage } from '../pages/checkout-page.ts'
import { openSite, pageHeaders, type Site } from '../pages/layout.ts'
import { sendPage } from './page-answers.ts'

/** Far above the largest events, which hold an invoice with its lines. */
const MAX_EVENT_BYTES = 262_144
const MAX_FORM_BYTES = 1024
const FORM_TYPE = 'application/x-www-form-urlencoded'
/** `t=` and one signature or more. A header of another form is refused before the body is read. */
const SIGNATURE_FORM = /^t=\d{1,12}(,[a-z0-9]+=[0-9a-f]+)+$/

export async function mountBilling(app: FastifyInstance, api: Api) {
  await app.register(async (raw) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    // Not counted against the address: a limit would lose events, and a forged one costs a digest and no query.
    raw.post<{ Body: Buffer }>('/v1/stripe/webhook', {
      bodyLimit: MAX_EVENT_BYTES,
      config: { operation: 'stripe_webhook' },
      onRequest: async (request) => void signatureOf(request),
      handler: (request) => receiveEvent(request, api),
    })
  })
  await app.register(async (forms) => {
    forms.removeAllContentTypeParsers()
    forms.addContentTypeParser<string>(FORM_TYPE, { parseAs: 'string' }, (_request, body, done) =>
      done(null, new URLSearchParams(body)),
    )
    forms.addHook('onRequest', (request) => api.limits.spend(request.ip))
    forms.get('/checkout/success', { config: { operation: 'checkout_page' } }, (_request, reply) =>
      show(reply, 200, api, successPage),
    )
    forms.get('/checkout/cancel', { config: { operation: 'checkout_page' } }, (_request, reply) =>
      show(reply, 200, api, cancelPage),
    )
    forms.get<PageRoute>('/checkout/:token', { config: { operation: 'checkout_page' } }, (request, reply) =>
      showSimulated(request, reply, api),
    )
    forms.post<PageRoute>('/checkout/:token', {
      bodyLimit: MAX_FORM_BYTES,
      config: { operation: 'checkout_page', bodyType: FORM_TYPE, form: '' },
      handler: (request, reply) => actOnPage(request, reply, api),
    })
  })
}

type PageRoute = { Params: { token: string } }
type PageRequest = FastifyRequest<PageRoute>

/**
 * Answers 2xx only when the event is processed completely or is ignored, because Stripe repeats it after any other
 * status.
 */
async function receiveEvent(request: FastifyRequest<{ Body: Buffer }>, api: Api) {
  const provider = requireProvider(api)
  if (provider.name !== 'stripe') throw new AppError('not_found', 'Subscriptions are simulated here, without Stripe.')
  const event = provider.readEvent(request.body, signatureOf(request), api.now())
  const received = await handleEvent(api, provider, event)
  forgetCallers(received, api)
  return { received: true, outcome: received.outcome }
}

function signatureOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const signature = headers['stripe-signature']
  if (typeof signature === 'string' && SIGNATURE_FORM.test(signature)) return signature
  throw new AppError('invalid_request', 'Stripe-Signature is missing or malformed.')
}

/** This process caches accounts with their tiers; after a change of tier they are read again. */
function forgetCallers({ change }: HandledEvent, { callers }: Pick<Api, 'callers'>) {
  if (change) callers.clear()
}

async function showSimulated(request: PageRequest, reply: FastifyReply, api: Api) {
  const { billing } = api
  const page = billing?.name === 'simulation' ? await billing.findPage(request.params.token) : null
  return page ? show(reply, 200, api, (site) => simulatedPage(site, page)) : show(reply, 404, api, noCheckoutPage)
}

async function actOnPage(request: PageRequest, reply: FastifyReply, api: Api) {
  const { billing } = api
  const page = billing?.name === 'simulation' ? await billing.findPage(request.params.token) : null
  if (billing?.name !== 'simulation' || !page) return show(reply, 404, api, noCheckoutPage)
  const given = request.body instanceof URLSearchParams ? request.body.get('action') : null
  const action = SIMULATED_ACTIONS.find((known) => known === given)
  if (!action) throw new AppError('invalid_request', `action must be one of ${SIMULATED_ACTIONS.join(', ')}.`)
  const location = await act(billing, request.params.token, action, api)
  return reply.code(303).headers(pageHeaders(CHECKOUT)).header('location', location).send()
}

/** Returns the path of the page to show next. */
async function act(billing: Simulation, token: string, action: SimulatedAction, api: Api): Promise<string> {
  const event = await billing.act(token, action)
  if (event) forgetCallers(await handleEvent(api, billing, event), api)
  if (action === 'cancel') return '/checkout/cancel'
  // Without an event the page was used before, or nothing changed; the page itself says so.
  return event ? '/checkout/success' : `/checkout/${token}`
}

/** The page sends a form to its own address, which is a secret. */
const CHECKOUT = { forms: true, secret: true }

async function show(reply: FastifyReply, status: number, api: Api, render: (site: Site) => string) {
  return sendPage(reply, render(await openSite(api)), { status, ...CHECKOUT })
}
