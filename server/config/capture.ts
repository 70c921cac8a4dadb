// Variables of the evidence that is kept of pages.
import { z } from 'zod'
import { whole } from './numbers.ts'

export const captureVariables = {
  SOURCE_CAPTURE: {
    schema: z.enum(['on', 'off']),
    about: 'on: keeps evidence of pages. Unset: on in offline mode only',
  },
  CAPTURE_RETENTION_SECONDS: { schema: whole(1), about: "Longest time for it. Unset: the result's" },
  CAPTURE_MAX_BYTES: {
    schema: whole(0),
    default: '10737418240',
    about: 'Bound on all of it',
  },
} as const

interface Values {
  PAYMENT_MODE: 'offline' | 'testnet' | 'mainnet'
  SOURCE_CAPTURE?: 'on' | 'off' | undefined
  CAPTURE_RETENTION_SECONDS?: number | undefined
  CAPTURE_MAX_BYTES: number
}

export function readCapture(values: Values) {
  return {
    enabled: (values.SOURCE_CAPTURE ?? (values.PAYMENT_MODE === 'offline' ? 'on' : 'off')) === 'on',
    /** Null: as long as the result. */
    retentionSeconds: values.CAPTURE_RETENTION_SECONDS ?? null,
    maxBytes: values.CAPTURE_MAX_BYTES,
  }
}
