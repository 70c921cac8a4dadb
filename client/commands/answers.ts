// What commands need of each answer. The client returns answers unchanged, so another program at the address could pass for the service:
// a command would print what is not there, or say that something is deleted.
import { CountersignError } from '../error.ts'
import type { OPERATIONS } from '../operations/operations.ts'

type Name = keyof typeof OPERATIONS

/**
 * Members of the answer that are always there: `x[]` is a list, `x{}` an object, `x` anything but nothing. Null where there is no body.
 * A test compares them with the service's own description.
 */
export const ANSWERS: Readonly<Record<Exclude<Name, RawName>, string | null>> = {
  getCapabilities: 'price{} payment_mode',
  getRiskFlags: 'risk_flags[]',
  getMethodologies: 'methodologies[]',
  getMethodology: 'methodology_version parts[]',
  getPayment: 'request_id payments[]',
  findPayment: 'request_id payments[]',
  getKeys: 'keys[]',
  register: 'handle api_key tier limits{}',
  listApiKeys: 'api_keys[]',
  createApiKey: 'id kind api_key',
  revokeApiKey: 'id ends_at',
  getUsage: 'handle tier limits{} used{} resets_at',
  createCheckout: 'checkout_url tier price_usd expires_at',
  openBillingPortal: 'portal_url expires_at',
  grantLease: 'lease{} state receipts{} attestation{}',
  renewLease: 'lease{} state receipts{} attestation{}',
  revokeLease: 'lease_id state revoked_ms attestation{}',
  getLease: 'lease{} state receipts{}',
  listLeases: 'leases[]',
  verifyLease: 'lease_id valid state',
  createReceipt: 'attestation{} inclusion{} checkpoint',
  getReceipt: 'attestation{} inclusion{} checkpoint',
  listReceipts: 'receipts[]',
  verifyReceipt: 'valid checks[]',
  getChainHead: 'serial receipt_hash',
  getChain: 'attestations[]',
  getConsistency: 'hashes[]',
  verifyChain: 'valid receipts',
  putCitationWatch: 'name state source_url quote webhook_url',
  getCitationWatch: 'name state source_url quote webhook_url',
  listCitationWatches: 'citation_watches[]',
  deleteCitationWatch: null,
  checkCitationWatch: 'name state source_url quote webhook_url',
  testCitationWatch: 'name alert{} attestation{}',
  listCitationAlerts: 'alerts[] webhook_state',
  redeliverCitationAlert: 'id type state attempts[]',
  rotateCitationWebhookSecret: 'name webhook_secret',
  checkQuotes: 'source{} quotes[]',
  getQuoteCheck: 'source{} quotes[]',
  putWatchdog: 'name state interval_s webhook_url',
  sendHeartbeat: 'name state',
  getWatchdog: 'name state interval_s webhook_url',
  listWatchdogs: 'watchdogs[]',
  pauseWatchdog: 'name state interval_s webhook_url',
  testWatchdog: 'name alert{} attestation{}',
  deleteWatchdog: null,
  listAlerts: 'alerts[] webhook_state',
  redeliverAlert: 'id type state attempts[]',
  rotateWebhookSecret: 'name webhook_secret',
  putJournalSlot: 'slot bytes sha256 updated_at',
  deleteJournalSlot: null,
  listJournalSlots: 'slots[]',
}

/** Their bodies are bytes, and their headers say whose they are. */
type RawName = 'getEvidence' | 'getClaimsEvidence' | 'getJournalSlot'

/** Throws a CountersignError for an answer without what the commands need. */
export function checkAnswer(name: Name, answer: unknown, origin: string): void {
  const fault = faultOf(name, answer)
  if (fault === null) return
  const message = `${origin} answered as no Countersign service does: ${fault}. Is the address right?`
  throw new CountersignError({ code: 'unexpected_response', message, retryable: false })
}

function faultOf(name: Name, answer: unknown): string | null {
  if (name === 'getJournalSlot') return tagOf(answer) === '' ? 'the bytes have no etag' : null
  if (!Object.hasOwn(ANSWERS, name)) return null
  const members = ANSWERS[name as keyof typeof ANSWERS]
  if (members === null) return answer === undefined ? null : 'it has a body'
  const missing = members.split(' ').find((member) => !isThere(member, answer as Record<string, unknown>))
  return missing === undefined ? null : `${missing.replace(/\W+$/, '')} is missing`
}

/** Null of an answer without a body: nothing has changed. */
const tagOf = (answer: unknown) => (answer as { etag: string } | null)?.etag

function isThere(member: string, answer: Record<string, unknown>): boolean {
  const value = answer[member.replace(/\W+$/, '')]
  if (member.endsWith('[]')) return Array.isArray(value)
  if (member.endsWith('{}')) return typeof value === 'object' && value !== null && !Array.isArray(value)
  return value !== undefined && value !== null
}
