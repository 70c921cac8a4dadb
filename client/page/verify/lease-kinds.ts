// Leases and their revocations as things that /verify examines. Pages that show results alone do without them.
import type { Lease } from '../../lease.ts'
import { type Fact, when } from './describe.ts'
import type { Kind } from './examine.ts'
import { checkLease, checkRevocation, leaseIn, type Revocation, revocationIn } from './lease-check.ts'

export const LEASES: readonly Kind[] = [
  (value) => {
    const lease = leaseIn(value)
    if (!lease) return null
    return {
      kind: 'a lease',
      keyId: lease.key_id,
      facts: leaseFacts(lease),
      verify: async ({ keys }, now) => checkLease(value, keys, now),
    }
  },
  (value) => {
    const revocation = revocationIn(value)
    if (!revocation) return null
    return {
      kind: 'the revocation of a lease',
      keyId: revocation.key_id,
      facts: revocationFacts(revocation),
      verify: async ({ keys }) => checkRevocation(value, keys),
    }
  },
]

function leaseFacts({ account, agent, action, lim, granted_ms, expires_ms, recheck_by_ms }: Lease): Fact[] {
  return [
    ['Agent', agent],
    ['May', action],
    ['Within', lim || 'no stated limits'],
    ['Granted by', account],
    ['Granted on', when(granted_ms)],
    ['Renew before', when(recheck_by_ms)],
    ['Ends', when(expires_ms)],
  ]
}

function revocationFacts({ account, agent, action, lease_id, revoked_ms }: Revocation): Fact[] {
  return [
    ['Agent', agent],
    ['Was allowed to', action],
    ['Revoked by', account],
    ['Revoked on', when(revoked_ms)],
    ['Lease', lease_id],
  ]
}
