// Tells the JSON of `countersign check`, which a reader may take for something signed, from everything else.

export interface CheckReport {
  file: string
  service: string
  checked_at: string
  ok: boolean
  citations: readonly { verdict?: { receipt_serial?: unknown } | null }[]
  verdicts?: { folder?: unknown } | null
}

/** Null for anything else. Nothing in it is proved. */
export function checkReportIn(value: unknown): CheckReport | null {
  if (typeof value !== 'object' || value === null || 'receipt' in value || 'attestation' in value) return null
  const { file, service, checked_at, ok, citations, counts } = value as Partial<CheckReport> & { counts?: unknown }
  const isReport =
    [file, service, checked_at].every((one) => typeof one === 'string') &&
    typeof ok === 'boolean' &&
    typeof counts === 'object' &&
    Array.isArray(citations) &&
    citations.every((one) => typeof one === 'object' && one !== null)
  return isReport ? (value as CheckReport) : null
}
