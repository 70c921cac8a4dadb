// Sessions of the operator's dashboard: the operator enters OPERATOR_TOKEN once and gets a session in a cookie. The cookie
// is not the token, and the server does not store it: it is an expiry time and a random number, with a MAC whose key is
// derived from the seed and the token. Signing out ends a session in every process. A new token or a new seed ends every
// session.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { isSignedOut } from '../operate/actions.ts'

/** Seconds until a session ends, even if it is in use. */
export const SESSION_SECONDS = 8 * 3600
const COOKIE = 'countersign_operator'
/**
 * The browser sends the cookie only to the dashboard, over encrypted connections (or on this machine) and not from
 * other sites; scripts cannot read it.
 */
const ATTRIBUTES = 'Path=/operator; HttpOnly; Secure; SameSite=Strict'

export interface Session {
  /** Names the session in the log of actions. It gives no access. */
  id: string
  expiresMs: number
  /** Every form must contain it. Another site that makes the browser send a form does not know it. */
  formToken: string
}

/** Compares in constant time, also for different lengths. */
export function isOperatorToken(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

type Secrets = Pick<Api, 'secrets' | 'config'>

/** The value of Set-Cookie for a new session, and the session. @param now milliseconds since the epoch */
export function openSession(api: Secrets & Pick<Api, 'now'>): { cookie: string; session: Session } {
  const expiresMs = api.now() + SESSION_SECONDS * 1000
  const body = `${expiresMs}.${randomBytes(16).toString('base64url')}`
  const value = `${body}.${macOf(keyOf(api), 'session', body)}`
  return {
    cookie: `${COOKIE}=${value}; Max-Age=${SESSION_SECONDS}; ${ATTRIBUTES}`,
    session: sessionOf(api, body, expiresMs),
  }
}

/** The value of Set-Cookie that makes the browser forget the session. */
export const CLOSING_COOKIE = `${COOKIE}=; Max-Age=0; ${ATTRIBUTES}`

/** The session of a request; null without a session, after its expiry or sign-out, and if no token is configured. */
export async function findSession(
  api: Secrets & Pick<Api, 'now' | 'db'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
): Promise<Session | null> {
  if (!api.config.operatorToken) return null
  const cookies = (headers.cookie ?? '').split(';').map((part) => part.trim())
  for (const cookie of cookies.filter((part) => part.startsWith(`${COOKIE}=`))) {
    const [, body = '', expires = '', mac = ''] =
      /^((\d{13,15})\.[\w-]{22})\.([\w-]{43})$/.exec(cookie.slice(COOKIE.length + 1)) ?? []
    if (body !== '' && isSame(mac, macOf(keyOf(api), 'session', body)) && Number(expires) > api.now()) {
      const session = sessionOf(api, body, Number(expires))
      if (!(await isSignedOut(api.db, session.id))) return session
    }
  }
  return null
}

function sessionOf(api: Secrets, body: string, expiresMs: number): Session {
  return {
    id: createHash('sha256').update(body).digest('hex').slice(0, 12),
    expiresMs,
    formToken: macOf(keyOf(api), 'form', body),
  }
}

/**
 * Refuses a form that another site made the browser send. SameSite keeps the cookie from such requests already; the token of the form is
 * the second guard. Throws AppError `forbidden`.
 */
export function requireForm(session: Session, form: URLSearchParams, request: Pick<FastifyRequest, 'headers'>): void {
  requireSameOrigin(request)
  if (!isSame(form.get('form_token') ?? '', session.formToken))
    throw new AppError('forbidden', 'This form belongs to another session. Load the page again.')
}

/** Throws AppError `forbidden` where the browser says that another site sent the request. */
export function requireSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') throw new AppError('forbidden', 'Another site sent this form.')
}

function keyOf({ secrets, config }: Secrets): Buffer {
  return createHmac('sha256', secrets.operator)
    .update(config.operatorToken ?? '')
    .digest()
}

function macOf(key: Buffer, purpose: 'session' | 'form', body: string): string {
  return createHmac('sha256', key).update(`${purpose} ${body}`).digest('base64url')
}

function isSame(given: string, expected: string): boolean {
  const [one, two] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === two.length && timingSafeEqual(one, two)
}
