// All operations, in the order of the documentation.

import { createApiKey, listApiKeys, register, revokeApiKey } from './accounts/operations.ts'
import { citationAlerts, watchdogAlerts } from './alerts/operations.ts'
import { createCheckout, getUsage, openBillingPortal } from './billing/operations.ts'
import {
  checkCitationWatch,
  deleteCitationWatch,
  getCitationWatch,
  listCitationWatches,
  putCitationWatch,
  testCitationWatch,
} from './citations/operations.ts'
import { deleteJournalSlot, getJournalSlot, listJournalSlots, putJournalSlot } from './journal/operations.ts'
import { getLease, grantLease, listLeases, renewLease, revokeLease, verifyLease } from './leases/operations.ts'
import type { Operation } from './operation.ts'
import { getChain, getChainHead, getConsistency, getKeys } from './receipts/chain-operations.ts'
import { verifyChain, verifyReceipt } from './receipts/check-operations.ts'
import { createReceipt, getReceipt, listReceipts } from './receipts/operations.ts'
import { getMethodologies, getMethodology } from './verification/methodology.ts'
import { getCapabilities, getRequest, verifySource } from './verification/operations.ts'
import { findPayment, getPayment } from './verification/payment-status.ts'
import { getRiskFlags } from './verification/risk-flags.ts'
import {
  getWatchdog,
  getWatchdogs,
  pause,
  putWatchdog,
  removeWatchdog,
  sendHeartbeat,
  testWatchdog,
} from './watchdogs/operations.ts'

export const catalog: readonly Operation[] = [
  getCapabilities,
  verifySource,
  getRequest,
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
  putCitationWatch,
  getCitationWatch,
  listCitationWatches,
  deleteCitationWatch,
  checkCitationWatch,
  testCitationWatch,
  citationAlerts.list,
  citationAlerts.redeliver,
  citationAlerts.rotate,
  putWatchdog,
  sendHeartbeat,
  getWatchdog,
  getWatchdogs,
  pause,
  testWatchdog,
  removeWatchdog,
  watchdogAlerts.list,
  watchdogAlerts.redeliver,
  watchdogAlerts.rotate,
  putJournalSlot,
  getJournalSlot,
  deleteJournalSlot,
  listJournalSlots,
]
