// Variables of outside time: the time-stamp authorities (RFC 3161) that are asked about checkpoints.
import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { whole } from './numbers.ts'

const DAY_S = 86_400
const MAX_AUTHORITIES = 8

/** Addresses with commas between them. The settings of processes are shown, so no address may hold a password. */
const urls = z
  .string()
  .transform((text) => text.split(',').map((one) => one.trim()))
  .refine(
    (list) => list.every(isPlainAddress),
    'must be http or https URLs without a password, with commas between them',
  )
  .refine((list) => new Set(list).size === list.length, 'must not name an address twice')
  .refine((list) => list.length <= MAX_AUTHORITIES, `must be at most ${MAX_AUTHORITIES} URLs`)

function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}

export const timestampVariables = {
  TIMESTAMP_URLS: { schema: urls, about: 'Time-stamp authorities (RFC 3161) for checkpoints: URL,URL' },
  TIMESTAMP_INTERVAL_SECONDS: {
    schema: whole(60, DAY_S),
    default: '3600',
    about: 'How often each is asked',
  },
  TIMESTAMP_CA_FILE: { schema: z.string().min(1), about: "Their roots (PEM). Unset: Node's" },
}

export interface TimestampSettings {
  urls: readonly string[]
  intervalSeconds: number
  /** Trusted roots, PEM. Undefined: those that Node trusts. */
  ca: string | undefined
}

interface Values {
  TIMESTAMP_URLS?: string[] | undefined
  TIMESTAMP_INTERVAL_SECONDS: number
}

/** Undefined where no authority is asked. @param ca content of TIMESTAMP_CA_FILE */
export function readTimestamps(values: Values, ca: string | undefined): TimestampSettings | undefined {
  if (!values.TIMESTAMP_URLS) return undefined
  return { urls: values.TIMESTAMP_URLS, intervalSeconds: values.TIMESTAMP_INTERVAL_SECONDS, ca }
}

/** What is wrong with the content of a file of certificates. */
export function certificatesProblem(pem: string): string | null {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) return 'the file holds no certificate in PEM.'
  try {
    for (const block of blocks) new X509Certificate(block)
    return null
  } catch {
    return 'a certificate in the file cannot be read.'
  }
}
