// Every operation there is, in the order the documentation shows them.

import { createKey, getUsage, listKeysOperation, register, revokeKey } from './accounts/operations.ts'
import { createCheckout, openBillingPortal } from './billing/operations.ts'
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
import { getSlot, getSlots, putSlot, removeSlot } from './journal/operations.ts'
import { getLease, getLeases, grant, renew, revoke, verify } from './leases/operations.ts'
import type { Operation } from './operation.ts'
import { getChain, getChainHead, getConsistency, getKeys } from './receipts/chain-operations.ts'
import { verifyChain, verifyReceipt } from './receipts/check-operations.ts'
import { createReceipt, getReceipt, listReceipts } from './receipts/operations.ts'
import { getMethodologies, getMethodology } from './verification/methodology.ts'
import { getCapabilities, getRequest, verifySource } from './verification/operations.ts'
import { findPayment, getPayment } from './verification/payment-status.ts'
import { getRiskFlags } from './verification/risk-flags.ts'
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
  getRequest,
  getRiskFlags,
  getMethodologies,
  getMethodology,
  getPayment,
  findPayment,
  getKeys,
  register,
  listKeysOperation,
  createKey,
  revokeKey,
  getUsage,
  createCheckout,
  openBillingPortal,
  grant,
  renew,
  revoke,
  getLease,
  getLeases,
  verify,
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
  putSlot,
  getSlot,
  removeSlot,
  getSlots,
]
