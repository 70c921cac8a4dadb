// All operations, in the order of the documentation.

import { createApiKey, listApiKeys, register, revokeApiKey } from './accounts/operations.ts'
import { createCheckout, getUsage, openBillingPortal } from './billing/operations.ts'
import {
  checkCitationWatch,
  deleteCitationWatch,
  getCitationWatch,
  listCitationAlerts,
  listCitationWatches,
  putCitationWatch,
  redeliverCitationAlert,
  rotateCitationWebhookSecret,
  testCitationWatch,
} from './citations/operations.ts'
import { deleteJournalSlot, getJournalSlot, listJournalSlots, putJournalSlot } from './journal/operations.ts'
import { getLease, grantLease, listLeases, renewLease, revokeLease, verifyLease } from './leases/operations.ts'
import type { Operation } from './operation.ts'
import { checkQuotes, getQuoteCheck } from './quotes/operations.ts'
import { getChain, getChainHead, getConsistency, getKeys } from './receipts/chain-operations.ts'
import { verifyChain, verifyReceipt } from './receipts/check-operations.ts'
import { createReceipt, getReceipt, listReceipts } from './receipts/operations.ts'
import { getClaimsEvidence, getEvidence } from './verification/evidence-operations.ts'
import { getMethodologies, getMethodology } from './verification/offer/methodology.ts'
import { getRiskFlags } from './verification/offer/risk-flag-advice.ts'
import {
  buySource,
  getCapabilities,
  getRequest,
  getTerms,
  verifyClaims,
  verifySource,
} from './verification/operations.ts'
import { findPayment, getPayment } from './verification/payment-status.ts'
import {
  deleteWatchdog,
  getWatchdog,
  listAlerts,
  listWatchdogs,
  pauseWatchdog,
  putWatchdog,
  redeliverAlert,
  rotateWebhookSecret,
  sendHeartbeat,
  testWatchdog,
} from './watchdogs/operations.ts'

export const catalog: readonly Operation[] = [
  getCapabilities,
  verifySource,
  verifyClaims,
  getTerms,
  buySource,
  getRequest,
  getEvidence,
  getClaimsEvidence,
  getRiskFlags,
  getMethodologies,
  getMethodology,
  getPayment,
  findPayment,
  getKeys,
  register,
  listApiKeys,
  createApiKey,
  revokeApiKey,
  getUsage,
  createCheckout,
  openBillingPortal,
  grantLease,
  renewLease,
  revokeLease,
  getLease,
  listLeases,
  verifyLease,
  createReceipt,
  getReceipt,
  listReceipts,
  verifyReceipt,
  getChainHead,
  getChain,
  getConsistency,
  verifyChain,
  checkQuotes,
  getQuoteCheck,
  putCitationWatch,
  getCitationWatch,
  listCitationWatches,
  deleteCitationWatch,
  checkCitationWatch,
  testCitationWatch,
  listCitationAlerts,
  redeliverCitationAlert,
  rotateCitationWebhookSecret,
  putWatchdog,
  sendHeartbeat,
  getWatchdog,
  listWatchdogs,
  pauseWatchdog,
  testWatchdog,
  deleteWatchdog,
  listAlerts,
  redeliverAlert,
  rotateWebhookSecret,
  putJournalSlot,
  getJournalSlot,
  deleteJournalSlot,
  listJournalSlots,
]
