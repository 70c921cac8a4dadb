// Why a database cannot be reached, in words for an operator, and the cure.
import { errorMessage } from '../errors.ts'

/** Names server, database and role, never the password. */
export function describeUnreachable(url: string, error: unknown): { detail: string; cure: string } {
  const { hostname, port, pathname, username } = new URL(url)
  const code = causeCode(error) ?? ''
  const [detail, cure] = UNREACHABLE[code] ?? [
    errorMessage(error),
    'check DATABASE_URL, and that the server accepts connections from here',
  ]
  const where = `${username || 'no role'} at ${hostname || 'local socket'}:${port || 5432}${pathname}`
  return { detail: `${where}: ${detail}`, cure }
}

/** By SQLSTATE, or by the code of Node's error: what it means, and the cure. */
const SELF_SIGNED_CURE =
  'name its CA in NODE_EXTRA_CA_CERTS, or add ?sslmode=no-verify to DATABASE_URL, which authenticates nobody'
const UNREACHABLE: Readonly<Record<string, readonly [string, string]>> = {
  ECONNREFUSED: ['nothing listens there', 'start the database server, or correct host and port in DATABASE_URL'],
  ENOTFOUND: ['this host name does not exist', 'correct the host in DATABASE_URL'],
  EAI_AGAIN: ['the name server does not answer', 'check the DNS of this machine'],
  ETIMEDOUT: ['no answer', 'check the host in DATABASE_URL, and firewalls between here and there'],
  '28P01': ['the password is wrong', 'correct the password in DATABASE_URL'],
  '28000': ['the role is refused', 'correct the role in DATABASE_URL, or pg_hba.conf of the server'],
  '3D000': ['this database does not exist', 'create it (`createdb`), or correct its name in DATABASE_URL'],
  '53300': [
    'the server has no connection left',
    'lower the number of processes, or raise max_connections of the server',
  ],
  '57P03': ['the server is starting or stopping', 'wait, then run this again'],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['its certificate is self-signed', SELF_SIGNED_CURE],
  SELF_SIGNED_CERT_IN_CHAIN: ['its certificate is self-signed', SELF_SIGNED_CURE],
}

/** The first code among the error and its causes. */
export function causeCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'string' && UNAVAILABLE !== error.code) return error.code
  if (error instanceof AggregateError && error.errors.length > 0) return causeCode(error.errors[0])
  return causeCode(error.cause)
}

/** The code of UnavailableError, which says nothing of the cause. */
const UNAVAILABLE = 'provider_unavailable'
