// Every operation there is, in the order the documentation shows them.
import type { Operation } from './operation.ts'
import { getKeys } from './receipts/operations.ts'
import { getCapabilities, getRequest, verifySource } from './verification/operations.ts'

export const catalog: readonly Operation[] = [getCapabilities, verifySource, getRequest, getKeys]
