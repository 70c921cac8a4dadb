// Variables of the free look at /try.
import { z } from 'zod'
import { whole } from './numbers.ts'

export const lookVariables = {
  TRY_ENABLED: {
    schema: z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1'),
    default: 'true',
    about: 'false: /try answers 404, and no page has the form',
  },
  TRY_PER_ADDRESS_PER_DAY: {
    schema: whole(0, 1_000_000),
    default: '20',
    about: 'Pairs of page and claim an address (IPv6: /64) may try a day (UTC)',
  },
  TRY_PER_DAY: {
    schema: whole(0, 1_000_000),
    default: '2000',
    about: 'The same for all callers together',
  },
} as const

/** What bounds free looks. */
export interface TrySettings {
  enabled: boolean
  perAddress: number
  perDay: number
}

export function readTry(values: {
  TRY_ENABLED: boolean
  TRY_PER_ADDRESS_PER_DAY: number
  TRY_PER_DAY: number
}): TrySettings {
  const { TRY_ENABLED: enabled, TRY_PER_ADDRESS_PER_DAY: perAddress, TRY_PER_DAY: perDay } = values
  return { enabled, perAddress, perDay }
}
