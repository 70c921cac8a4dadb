// The figures of a week that passed, for the pictures of the operator's page: all of them are of the same verifications.

/** What ends together, several times a period by day and less often at night. Each verdict is one payment of the price. */
const VERDICTS = { supports: 24, insufficient_evidence: 15, contradicts: 9, mixed: 3 }

/**
 * A minute each twenty, from the last week until two hours ago. Counters only grow: what a period shows is the growth within it, and
 * all figures of a period are of the same verifications.
 */
export function pastMinutes() {
  const STEP = 20
  const end = Math.floor(Date.now() / 60_000) * 60_000
  const completed: Record<string, number> = { supports: 0, insufficient_evidence: 0, contradicts: 0, mixed: 0 }
  const total = { ended: 0, failed: 0, delivered: 0 }
  const times = (count: number, seconds: number) => ({
    buckets: { [seconds / 2]: count / 2, [seconds]: count, '+Inf': count },
    sum: (count * seconds) / 2,
    count,
  })
  const rows: unknown[] = []
  for (let ago = 7 * 24 * 60; ago > 120; ago -= STEP) {
    const at = new Date(end - ago * 60_000)
    const n = rows.length
    const isBusy = at.getUTCHours() >= 6 && at.getUTCHours() < 21
    const now = Object.entries(VERDICTS).map(([verdict, weight]) => {
      const count = n % (isBusy ? 3 : 9) === 0 ? weight : 0
      completed[verdict] = (completed[verdict] ?? 0) + count
      return count
    })
    const settled = now.reduce((sum, count) => sum + count, 0)
    total.ended += settled
    const fails = n % 3 === 0 ? 5 : 0
    total.failed += fails
    if (n % 18 === 0) total.delivered += 1
    const { ended, failed, delivered } = total
    const counters = {
      admitted: ended + failed,
      completed: { ...completed },
      failed: { source_timeout: failed },
      stages: { observe: times(ended + failed, 1), assess: times(ended, 0.25) },
      admission: times(ended + failed, 0.1),
      result: times(ended, 2),
      alerts: { delivered },
      probes: { ready: n },
      model: { calls: {}, tokens: {}, usd: 0 },
    }
    const place = { mode: 'offline', network: 'eip155:84532' }
    const entries = [
      { outcome: 'settled', reason: null, count: settled },
      { outcome: 'failed', reason: 'source_timeout', count: fails },
    ]
    rows.push({
      minute: at,
      depth: settled > 0 ? 3 : 0,
      oldest: settled > 0 ? 1.5 : 0,
      counters,
      payments: entries.flatMap((entry) =>
        entry.count > 0 ? [{ ...entry, ...place, amount_atomic: String(entry.count * 30_000) }] : [],
      ),
    })
  }
  return rows
}
