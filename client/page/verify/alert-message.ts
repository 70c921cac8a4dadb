// Checks an alert that a person pastes: the message with its headers, or its body alone, of which the receipt is checked.
import { type AlertRefusal, REQUESTERS, verifyAlert } from '../../alert.ts'
import { sha256Hex } from '../../bytes.ts'
import { type Attestation, verifyAttestation } from '../../chain/attestation.ts'
import type { PinnedKey } from '../../chain/keys.ts'
import type { Check, Verification } from '../../checks.ts'
import { canonicalJson, jsonFaults } from '../../json.ts'

export interface AlertMessage {
  headers: [name: string, value: string][]
  body: string
}

/** Header lines, an empty line and a body; null for any other text. Reads each character once. */
export function readMessage(text: string): AlertMessage | null {
  const headers: AlertMessage['headers'] = []
  let start = 0
  for (;;) {
    const end = text.indexOf('\n', start)
    if (end < 0) return null
    const line = text.slice(start, text.charAt(end - 1) === '\r' ? end - 1 : end)
    start = end + 1
    if (line === '') break
    const header = readHeader(line)
    if (!header || headers.length === MAX_HEADERS) return null
    headers.push(header)
  }
  const isMessage = headers.some(([name]) => name.toLowerCase() === 'webhook-id')
  return isMessage ? { headers, body: text.slice(start) } : null
}

/** Many times what a message has, with those that proxies add. */
const MAX_HEADERS = 1000

function readHeader(line: string): [string, string] | null {
  const at = line.indexOf(':')
  const name = line.slice(0, at)
  return at > 0 && /^[A-Za-z0-9-]+$/.test(name) ? [name, line.slice(at + 1).trim()] : null
}

export function isAlert(value: unknown): boolean {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: { event_seq?: unknown } }
  return typeof type === 'string' && /^[a-z]+\.[a-z_]+$/.test(type) && typeof data?.event_seq === 'number'
}

/** `signer`: the key that signed the message. That of its receipt is another one. */
export type MessageVerification = Verification & { signer?: PinnedKey }

/** The signature of the message counts at any age: a person reads an alert long after it was sent. */
export function checkMessage(message: AlertMessage, keys: readonly PinnedKey[]): MessageVerification {
  if (!keys.some(isForWebhooks))
    return listed([{ name: 'trusted_key', ok: false, detail: 'there is no key for webhooks to check it with' }])
  const verdict = verifyAlert({ ...message, ...ANY_AGE, keys })
  if (verdict.ok) {
    const signer = keys.filter(isForWebhooks).find((key) => verifyAlert({ ...message, ...ANY_AGE, keys: [key] }).ok)
    const receipt = verdict.receipted
      ? passed('alert_receipt')
      : { name: 'alert_receipt', ok: false, detail: 'not checked: there is no key for receipts' }
    const checks = [passed('message_headers'), passed('message_signature'), receipt]
    return { ok: true, checks, ...(signer && { signer }) }
  }
  const at = STEPS.findIndex(([, reasons]) => reasons.includes(verdict.reason))
  return listed(
    STEPS.map(([name], index) => {
      if (index < at) return passed(name)
      return { name, ok: false, detail: index === at ? verdict.detail : 'not checked: an earlier check failed' }
    }),
  )
}

const ANY_AGE = { toleranceSeconds: Number.POSITIVE_INFINITY }

const isForWebhooks = ({ use, status }: PinnedKey) =>
  (use ?? 'webhook') === 'webhook' && (status ?? 'active') === 'active'

const STEPS: [name: string, reasons: AlertRefusal[]][] = [
  ['message_headers', ['missing_header', 'repeated_header', 'malformed_header', 'too_old', 'too_new']],
  ['message_signature', ['unsigned', 'bad_signature']],
  ['alert_receipt', ['malformed_body', 'bad_receipt']],
]

/** The receipt in the body of an alert: whose it is, and that it covers exactly this body. */
export function checkBody(body: unknown, keys: readonly PinnedKey[]): Verification {
  const { receipt, ...subject } = body as { receipt?: { attestation?: Attestation } }
  const attestation = receipt?.attestation
  const { checks } = verifyAttestation(attestation, { keys })
  const requester = REQUESTERS.includes(attestation?.requested_by ?? '')
    ? null
    : `the receipt was made for ${JSON.stringify(attestation?.requested_by ?? null)}`
  const isCovered =
    jsonFaults(subject).length === 0 && sha256Hex(canonicalJson(subject)) === attestation?.subject_sha256
  return listed([
    ...checks,
    fault('alert_requester', requester),
    fault('alert_subject', isCovered ? null : 'the receipt is for another alert than this one'),
  ])
}

const passed = (name: string): Check => ({ name, ok: true })
const fault = (name: string, detail: string | null): Check => (detail ? { name, ok: false, detail } : passed(name))
const listed = (checks: Check[]): Verification => ({ ok: checks.every(({ ok }) => ok), checks })
