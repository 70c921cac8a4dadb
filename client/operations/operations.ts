// Every operation of the service as data, and a class with one typed method for each. A test compares the table and the
// types with the service's catalogue.
import type { AccountOperations } from './account.ts'
import type { CitationWatchOperations } from './citation-watch.ts'
import type { DiscoveryOperations } from './discovery.ts'
import type { JournalOperations } from './journal.ts'
import type { LeaseOperations } from './lease-operations.ts'
import type { QuoteCheckOperations } from './quote-check.ts'
import type { ReceiptOperations } from './receipt-operations.ts'
import type { WatchdogOperations } from './watchdog.ts'

export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** As in OpenAPI: members of the input take the places in braces. */
  path: string
  /** What the caller must show: nothing, a payment, a recovery token, a payment made before, or an API key. */
  access: 'public' | 'payment' | 'recovery' | 'proof' | 'account'
  /** `Idempotency-Key` applies. */
  keyed?: true
  /** The service may answer 202; the call then waits and repeats. */
  waits?: true
  /** The body of the request is the member `data`, as bytes. */
  rawBody?: true
  /** The body of the answer is bytes, with an entity tag. */
  rawAnswer?: true
}

/** The methods of `Countersign` that buy and fetch a verification. Their name in the catalogue is beside them. */
export const PURCHASE = {
  verifySource: { method: 'POST', path: '/api/agent/v1/verify-source', access: 'payment', keyed: true },
  verifyClaims: { method: 'POST', path: '/api/agent/v1/verify-claims', access: 'payment', keyed: true },
  recover: { method: 'GET', path: '/api/agent/v1/requests/{request_id}', access: 'recovery' },
} as const satisfies Record<string, Operation>

/** All other operations, by method: the name in the catalogue in camel case. */
export const OPERATIONS = {
  getCapabilities: { method: 'GET', path: '/api/agent/v1/capabilities', access: 'public' },
  getRiskFlags: { method: 'GET', path: '/risk-flags', access: 'public' },
  getMethodologies: { method: 'GET', path: '/methodology', access: 'public' },
  getMethodology: { method: 'GET', path: '/methodology/{version}', access: 'public' },
  getEvidence: {
    method: 'GET',
    path: '/api/agent/v1/verify-source/{request_id}/evidence',
    access: 'recovery',
    rawAnswer: true,
  },
  getClaimsEvidence: {
    method: 'GET',
    path: '/api/agent/v1/verify-claims/{request_id}/evidence',
    access: 'recovery',
    rawAnswer: true,
  },
  getPayment: { method: 'GET', path: '/api/agent/v1/payments/{request_id}', access: 'recovery' },
  findPayment: { method: 'GET', path: '/api/agent/v1/payments', access: 'proof' },
  getKeys: { method: 'GET', path: '/v1/keys', access: 'public' },
  register: { method: 'POST', path: '/v1/register', access: 'public' },
  listApiKeys: { method: 'GET', path: '/v1/api-keys', access: 'account' },
  createApiKey: { method: 'POST', path: '/v1/api-keys', access: 'account' },
  revokeApiKey: { method: 'POST', path: '/v1/api-keys/{id}/revoke', access: 'account' },
  getUsage: { method: 'GET', path: '/v1/usage', access: 'account' },
  createCheckout: { method: 'POST', path: '/v1/checkout', access: 'account' },
  openBillingPortal: { method: 'POST', path: '/v1/billing-portal', access: 'account' },
  grantLease: { method: 'POST', path: '/v1/lease', access: 'account' },
  renewLease: { method: 'POST', path: '/v1/lease/{lease_id}/renew', access: 'account' },
  revokeLease: { method: 'POST', path: '/v1/lease/{lease_id}/revoke', access: 'account' },
  getLease: { method: 'GET', path: '/v1/lease/{lease_id}', access: 'account' },
  listLeases: { method: 'GET', path: '/v1/lease', access: 'account' },
  verifyLease: { method: 'POST', path: '/v1/lease/{lease_id}/verify', access: 'account' },
  createReceipt: { method: 'POST', path: '/v1/receipt', access: 'account', keyed: true },
  getReceipt: { method: 'GET', path: '/v1/receipt/{serial}', access: 'public' },
  listReceipts: { method: 'GET', path: '/v1/receipt', access: 'account' },
  verifyReceipt: { method: 'POST', path: '/v1/receipt/verify', access: 'public' },
  getChainHead: { method: 'GET', path: '/v1/chain-head', access: 'public' },
  getChain: { method: 'GET', path: '/v1/chain', access: 'public' },
  getConsistency: { method: 'GET', path: '/v1/consistency', access: 'public' },
  verifyChain: { method: 'GET', path: '/v1/chain/verify', access: 'public' },
  putCitationWatch: { method: 'PUT', path: '/v1/citation-watch/{name}', access: 'account' },
  getCitationWatch: { method: 'GET', path: '/v1/citation-watch/{name}', access: 'account' },
  listCitationWatches: { method: 'GET', path: '/v1/citation-watch', access: 'account' },
  deleteCitationWatch: { method: 'DELETE', path: '/v1/citation-watch/{name}', access: 'account' },
  checkCitationWatch: { method: 'POST', path: '/v1/citation-watch/{name}/check', access: 'account' },
  testCitationWatch: { method: 'POST', path: '/v1/citation-watch/{name}/test', access: 'account' },
  listCitationAlerts: { method: 'GET', path: '/v1/citation-watch/{name}/alerts', access: 'account' },
  redeliverCitationAlert: {
    method: 'POST',
    path: '/v1/citation-watch/{name}/alerts/{id}/redeliver',
    access: 'account',
  },
  rotateCitationWebhookSecret: { method: 'POST', path: '/v1/citation-watch/{name}/secret', access: 'account' },
  checkQuotes: { method: 'POST', path: '/v1/quote-check', access: 'account', waits: true },
  getQuoteCheck: { method: 'GET', path: '/v1/quote-check/{check_id}', access: 'account', waits: true },
  putWatchdog: { method: 'PUT', path: '/v1/watchdog/{name}', access: 'account' },
  sendHeartbeat: { method: 'POST', path: '/v1/heartbeat/{name}', access: 'account' },
  getWatchdog: { method: 'GET', path: '/v1/watchdog/{name}', access: 'account' },
  listWatchdogs: { method: 'GET', path: '/v1/watchdog', access: 'account' },
  pauseWatchdog: { method: 'POST', path: '/v1/watchdog/{name}/pause', access: 'account' },
  testWatchdog: { method: 'POST', path: '/v1/watchdog/{name}/test', access: 'account' },
  deleteWatchdog: { method: 'DELETE', path: '/v1/watchdog/{name}', access: 'account' },
  listAlerts: { method: 'GET', path: '/v1/watchdog/{name}/alerts', access: 'account' },
  redeliverAlert: { method: 'POST', path: '/v1/watchdog/{name}/alerts/{id}/redeliver', access: 'account' },
  rotateWebhookSecret: { method: 'POST', path: '/v1/watchdog/{name}/secret', access: 'account' },
  putJournalSlot: { method: 'PUT', path: '/v1/journal/{slot}', access: 'account', rawBody: true },
  getJournalSlot: { method: 'GET', path: '/v1/journal/{slot}', access: 'account', rawAnswer: true },
  deleteJournalSlot: { method: 'DELETE', path: '/v1/journal/{slot}', access: 'account' },
  listJournalSlots: { method: 'GET', path: '/v1/journal', access: 'account' },
} as const satisfies Record<string, Operation>

/**
 * One method for each operation. Each throws CountersignError and does not retry. Answers are returned unchanged: their
 * types are promises of the service, which are not checked here.
 */
export interface Operations
  extends DiscoveryOperations,
    AccountOperations,
    LeaseOperations,
    ReceiptOperations,
    CitationWatchOperations,
    QuoteCheckOperations,
    WatchdogOperations,
    JournalOperations {}

/** Sends one operation and returns the body of its answer. */
export type Send = (operation: Operation, input: object, options: object) => Promise<unknown>

class Sender {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  static method(operation: Operation) {
    return function (this: Sender, input: object = {}, options: object = {}) {
      return this.#send(operation, input, options)
    }
  }
}

for (const [name, operation] of Object.entries(OPERATIONS))
  Object.defineProperty(Sender.prototype, name, {
    value: Sender.method(operation),
    writable: true,
    configurable: true,
  })

/** The base class of `Countersign`. Its methods are those of `OPERATIONS`. */
export const OperationMethods = Sender as unknown as new (send: Send) => Operations
