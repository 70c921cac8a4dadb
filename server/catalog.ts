// Every operation there is, in the order the documentation shows them.
import { getSlot, getSlots, putSlot, removeSlot } from './control/journal-operations.ts'
import { getLease, getLeases, grant, renew, revoke } from './control/lease-operations.ts'
import { createKey, getUsage, listKeysOperation, register, revokeKey } from './control/operations.ts'
import type { Operation } from './operation.ts'
import { findPayment, getPayment } from './payments/fate.ts'
import { getChain, getChainHead, getConsistency, getKeys } from './receipts/chain-operations.ts'
import { createReceipt, getReceipt } from './receipts/operations.ts'
import { getCapabilities, getRequest, verifySource } from './verification/operations.ts'

export const catalog: readonly Operation[] = [
  getCapabilities,
  verifySource,
  getRequest,
  getPayment,
  findPayment,
  getKeys,
  register,
  listKeysOperation,
  createKey,
  revokeKey,
  getUsage,
  grant,
  renew,
  revoke,
  getLease,
  getLeases,
  createReceipt,
  getReceipt,
  getChainHead,
  getChain,
  getConsistency,
  putSlot,
  getSlot,
  removeSlot,
  getSlots,
]
