// The options that name trusted keys, as several commands have them, and what they hold.
import { checkKeys, readPin } from '../arguments.ts'
import { type PinnedKey, trustIntroduced } from '../verification.ts'
import type { OptionTable } from './command.ts'
import { readKeys } from './input-file.ts'
import { signatureCheck } from './signature-check.ts'

/** Keys that sign receipts. */
export const PINS = {
  keys: { type: 'string', multiple: true, value: 'FILE', help: 'trusted keys as /v1/keys lists them' },
  pin: { type: 'string', multiple: true, value: 'KEYID:HEX', help: 'a trusted key of the service; may be repeated' },
  introduced: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    help: 'keys as /v1/keys lists them, trusted only where a trusted key introduces them',
  },
} as const satisfies OptionTable

export interface Pins {
  keys?: string[]
  pin?: string[]
  introduced?: string[]
}

/** The keys of `--keys` and `--pin`, without a check of their form. Throws a UsageError. */
export async function readPinned({ keys = [], pin = [] }: Pins): Promise<PinnedKey[]> {
  return [...(await Promise.all(keys.map(readKeys))).flat(), ...pin.map(readPin)]
}

/** The keys of `--introduced`, of which none is trusted by itself. Throws a UsageError. */
export async function readIntroducedFiles({ introduced = [] }: Pins): Promise<PinnedKey[]> {
  return (await Promise.all(introduced.map(readKeys))).flat()
}

/** The trusted keys: those that are pinned, and those that they introduced. Throws a UsageError where none is pinned. */
export async function readTrusted(pins: Pins): Promise<PinnedKey[]> {
  const pinned = await readPinned(pins)
  checkKeys(pinned)
  return trustIntroduced(await readIntroducedFiles(pins), pinned, { signatureCheck })
}
