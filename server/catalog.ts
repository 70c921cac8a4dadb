// Every operation there is, in the order the documentation shows them.
import { createKey, listKeysOperation, register, revokeKey } from './control/operations.ts'
import type { Operation } from './operation.ts'
import { createReceipt, getChain, getChainHead, getConsistency, getKeys, getReceipt } from './receipts/operations.ts'
import { getCapabilities, getRequest, verifySource } from './verification/operations.ts'

export const catalog: readonly Operation[] = [
  getCapabilities,
  verifySource,
  getRequest,
  getKeys,
  register,
  listKeysOperation,
  createKey,
  revokeKey,
  createReceipt,
  getReceipt,
  getChainHead,
  getChain,
  getConsistency,
]
