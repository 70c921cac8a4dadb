// Scopes: what an API key may do. Every operation of an account names the one scope that it needs.
import { z } from 'zod'

const SCOPES = [
  'account:read',
  'account:write',
  'lease:read',
  'lease:write',
  'receipt:write',
  'quote:read',
  'quote:write',
  'watchdog:read',
  'watchdog:write',
  'heartbeat:send',
  'journal:read',
  'journal:write',
] as const
export type Scope = (typeof SCOPES)[number]

export const keyKind = z.enum(['full', 'read_only', 'heartbeat'])
export type KeyKind = z.output<typeof keyKind>

/** The scopes of each kind of key. A cron file needs no more than `heartbeat`. */
export const KEY_SCOPES: Readonly<Record<KeyKind, readonly Scope[]>> = {
  full: SCOPES,
  read_only: SCOPES.filter((scope) => scope.endsWith(':read')),
  heartbeat: ['heartbeat:send'],
}
