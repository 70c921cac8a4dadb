// A gateway: pays for an agent only under a lease that says so, and stops within 30 seconds of its revocation.
import { type PinnedKey, verifyLease } from '../../client/lease.ts'

export function buildGateway(service: string, apiKey: string, account: string, keys: PinnedKey[]) {
  const held = new Map<string, { answer: unknown; askedAt: number }>()

  async function renew(id: string) {
    const askedAt = performance.now()
    const headers = { authorization: `Bearer ${apiKey}` }
    const url = `${service}/v1/lease/${encodeURIComponent(id)}/renew`
    const response = await fetch(url, { method: 'POST', headers }).catch(() => null)
    // Only these two are answers about the lease. While the service is away, what is held is good until its deadline.
    if (response?.ok || response?.status === 409) held.set(id, { answer: await response.json(), askedAt })
  }

  function judge(id: string, agent: string) {
    const lease = held.get(id)
    return lease && verifyLease(lease.answer, { keys, account, agent, action: 'pay', fetched: lease })
  }

  /** 'ok', or why the payment must not be forwarded. */
  return async function mayPay(leaseId: string, agent: string, usd: number): Promise<string> {
    const before = judge(leaseId, agent)
    const due = !before || (before.ok ? before.remainingMs < 10_000 : before.reason === 'recheck_passed')
    if (due) await renew(leaseId)
    const verdict = judge(leaseId, agent)
    if (!verdict?.ok) return verdict?.reason ?? 'no_lease'
    // The policy is ours to read. What we do not understand, we refuse.
    const most = /^usd<=(\d+)$/.exec(verdict.lease.lim)?.[1]
    return most !== undefined && usd <= Number(most) ? 'ok' : 'over_limit'
  }
}
