// A second, independent implementation of the signatures of alerts, and the cases on which every verifier must agree.
// `node test/alerts/issuer.ts` prints test/vectors/alert.json.
import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { AlertRefusal, SignatureKind } from '../../client/alert.ts'
import { attest, jcs, keys as receiptPins, sha256 } from '../client/issuer.ts'

function keyPair(fill: number) {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, fill)])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return { privateKey, pubkey_hex: spki.subarray(-32).toString('hex') }
}

const ours = keyPair(0x31)
const retired = keyPair(0x32)
const stranger = keyPair(0x33)
const secretOf = (fill: number, length = 32) => `whsec_${Buffer.alloc(length, fill).toString('base64')}`
export const SECRET = secretOf(0x41)
const OLD_SECRET = secretOf(0x42)
const STRANGE_SECRET = secretOf(0x43)

export const webhookPins = [
  { key_id: 4, use: 'webhook', pubkey_hex: ours.pubkey_hex, status: 'active' },
  { key_id: 3, use: 'webhook', pubkey_hex: retired.pubkey_hex, status: 'retired' },
]
const receiptPin = { ...receiptPins[0]!, use: 'receipt', status: 'active' }

export const ID = 'wh_00112233445566778899aabbccddeeff'
/** Seconds since the epoch. */
export const SENT = 1_795_000_000
const alert = {
  type: 'watchdog.missed',
  timestamp: '2026-11-18T17:46:40.000Z',
  data: { event_seq: 41, watchdog: 'nächtlich \u{1F6A2}', state: 'down' },
}
const attestation = attest({ subject_sha256: sha256(jcs(alert)), requested_by: 'watchdog', label: alert.type })
export const BODY = JSON.stringify({ ...alert, receipt: { attestation } })

const signedText = (body: string, id: string, seconds: number | string) => Buffer.from(`${id}.${seconds}.${body}`)
const v1 = (secret: string, text: Buffer) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(text)
    .digest('base64')}`
const v1a = (key: KeyObject, text: Buffer) => `v1a,${sign(null, text, key).toString('base64')}`

/** A message as it is sent, except for the parts that are given. */
export function send({ body = BODY, id = ID, seconds = SENT as number | string, secrets = [SECRET], key = ours } = {}) {
  const text = signedText(body, id, seconds)
  const signatures = [...secrets.map((secret) => v1(secret, text)), v1a(key.privateKey, text)]
  return {
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures.join(' '),
    } as Record<string, string | string[]>,
    body,
  }
}

export interface AlertCase {
  name: string
  headers: Record<string, string | string[]>
  body: string
  /** Instead of `secret` and `keys` of the vectors. */
  options: { secret?: string | string[]; keys?: object[]; now?: number; toleranceSeconds?: number }
  expect: 'ok' | AlertRefusal
  signed_by?: SignatureKind[]
  receipted?: boolean
}

type Message = ReturnType<typeof send>
type Options = AlertCase['options']

const good = (
  name: string,
  signed_by: SignatureKind[],
  message: Message,
  options: Options = {},
  receipted = false,
) => ({
  name,
  ...message,
  options,
  expect: 'ok' as const,
  signed_by,
  receipted,
})
const bad = (name: string, expect: AlertRefusal, message: Message, options: Options = {}): AlertCase => ({
  name,
  ...message,
  options,
  expect,
})

function changed(message: Message, headers: Message['headers']): Message {
  return { ...message, headers: { ...message.headers, ...headers } }
}

function without(message: Message, name: string): Message {
  const { [name]: _gone, ...headers } = message.headers
  return { ...message, headers }
}

/** Only the signatures for which `pick` is true. */
function only(message: Message, pick: (signature: string, index: number) => boolean): Message {
  const list = String(message.headers['webhook-signature']).split(' ').filter(pick).join(' ')
  return changed(message, { 'webhook-signature': list })
}

function flip(message: Message, kind: SignatureKind): Message {
  const list = String(message.headers['webhook-signature'])
    .split(' ')
    .map((part) => {
      const bytes = Buffer.from(part.split(',')[1] ?? '', 'base64')
      bytes[0] = (bytes[0] ?? 0) ^ 1
      return part.startsWith(`${kind},`) ? `${kind},${bytes.toString('base64')}` : part
    })
  return changed(message, { 'webhook-signature': list.join(' ') })
}

const withReceipt = (fields: Parameters<typeof attest>[0], document: object = alert) =>
  send({ body: JSON.stringify({ ...document, receipt: { attestation: attest(fields) } }) })

/** The options of cases that give none. The clock is half a minute after SENT. */
export const ALERT_OPTIONS = { secret: SECRET, keys: webhookPins, now: (SENT + 30) * 1000 }

export function alertCases(): AlertCase[] {
  const message = send()
  const id = 'webhook-id'
  const timestamp = 'webhook-timestamp'
  const signature = 'webhook-signature'
  const list = String(message.headers[signature])
  const hmacOnly = { keys: [] }
  const keyOnly = { secret: [] }
  const all = { keys: [...webhookPins, receiptPin] }
  const both = send({ secrets: [SECRET, OLD_SECRET] })
  const upper = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name.toUpperCase(), value]))
  const subject = { subject_sha256: sha256(jcs(alert)), requested_by: 'watchdog', label: alert.type }
  return [
    good('both signatures', ['v1', 'v1a'], message),
    good('the secret alone', ['v1'], message, hmacOnly),
    good('the key alone', ['v1a'], message, keyOnly),
    good('v1a before v1', ['v1', 'v1a'], changed(message, { [signature]: list.split(' ').reverse().join(' ') })),
    good('names of headers in upper case', ['v1', 'v1a'], { ...message, headers: upper }),
    good('headers in arrays, as some servers have them', ['v1', 'v1a'], {
      ...message,
      headers: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, [String(value)]])),
    }),
    good(
      'no v1, though a secret is given',
      ['v1a'],
      only(message, (one) => one.startsWith('v1a,')),
    ),
    good(
      'no v1a, though a key is given',
      ['v1'],
      only(message, (one) => one.startsWith('v1,')),
    ),
    good('a kind that nobody knows beside them', ['v1', 'v1a'], changed(message, { [signature]: `v2,what? ${list}` })),
    good('while secrets change: signed by both, we have the old one', ['v1', 'v1a'], both, { secret: OLD_SECRET }),
    good('while secrets change: signed by both, we have the new one', ['v1', 'v1a'], both),
    good('while secrets change: we have both', ['v1', 'v1a'], send({ secrets: [OLD_SECRET] }), {
      secret: [SECRET, OLD_SECRET],
    }),
    good('with its receipt', ['v1', 'v1a'], message, all, true),
    good('at the last second', ['v1', 'v1a'], message, { now: (SENT + 300) * 1000 }),
    good('by a clock that is behind, at the last second', ['v1', 'v1a'], message, { now: (SENT - 300) * 1000 }),
    good('long after, where that is allowed', ['v1', 'v1a'], message, {
      now: (SENT + 3600) * 1000,
      toleranceSeconds: 3600,
    }),
    bad('too old', 'too_old', message, { now: (SENT + 301) * 1000 }),
    bad('too new', 'too_new', message, { now: (SENT - 301) * 1000 }),
    bad('no time at all may pass', 'too_old', message, { toleranceSeconds: 0 }),
    bad('no id', 'missing_header', without(message, id)),
    bad('no timestamp', 'missing_header', without(message, timestamp)),
    bad('no signature', 'missing_header', without(message, signature)),
    bad('two ids', 'repeated_header', changed(message, { [id]: [ID, ID] })),
    bad('two timestamps, by case', 'repeated_header', changed(message, { 'Webhook-Timestamp': String(SENT) })),
    bad('two signature headers', 'repeated_header', changed(message, { [signature]: [list, list] })),
    bad('two signature headers, joined', 'malformed_header', changed(message, { [signature]: `${list}, ${list}` })),
    bad('two ids, joined', 'malformed_header', changed(message, { [id]: `${ID}, ${ID}` })),
    bad('an id with a dot', 'malformed_header', send({ id: 'wh_1.2' })),
    bad('an empty id', 'malformed_header', send({ id: '' })),
    bad('a timestamp that is no number', 'malformed_header', send({ seconds: '2026-11-18T17:46:40Z' })),
    bad('a timestamp with a fraction', 'malformed_header', send({ seconds: `${SENT}.0` })),
    bad('a timestamp of another spelling', 'malformed_header', send({ seconds: `0${SENT}` })),
    bad('an empty signature', 'malformed_header', changed(message, { [signature]: '' })),
    bad('a signature without its kind', 'malformed_header', changed(message, { [signature]: list.slice(3) })),
    bad('a signature that is cut short', 'malformed_header', changed(message, { [signature]: list.slice(0, -8) })),
    bad('base64 of another spelling', 'malformed_header', changed(message, { [signature]: `${list.slice(0, -1)}` })),
    bad(
      'signatures without end',
      'malformed_header',
      changed(message, { [signature]: Array.from({ length: 17 }, () => list.split(' ')[1]).join(' ') }),
    ),
    bad('only a kind that nobody knows', 'unsigned', changed(message, { [signature]: 'v2,what?' })),
    bad(
      'v1 alone, and no secret',
      'unsigned',
      only(message, (one) => one.startsWith('v1,')),
      keyOnly,
    ),
    bad(
      'v1a alone, and no key',
      'unsigned',
      only(message, (one) => one.startsWith('v1a,')),
      hmacOnly,
    ),
    bad('v1 with one bit changed', 'bad_signature', flip(message, 'v1')),
    bad('v1a with one bit changed', 'bad_signature', flip(message, 'v1a')),
    bad('v1 by another secret, v1a good', 'bad_signature', send({ secrets: [STRANGE_SECRET] })),
    bad('v1a by another key, v1 good', 'bad_signature', send({ key: stranger })),
    bad('v1a by a key that is retired', 'bad_signature', send({ key: retired }), keyOnly),
    bad('another body', 'bad_signature', { ...message, body: BODY.replace('down', 'up') }),
    bad('a body that was parsed and written anew', 'bad_signature', {
      ...message,
      body: JSON.stringify(JSON.parse(BODY), null, 1),
    }),
    bad('another id', 'bad_signature', changed(message, { [id]: ID.replace('00', 'ff') })),
    bad('another timestamp', 'bad_signature', changed(message, { [timestamp]: String(SENT + 1) })),
    bad('signed, and no JSON', 'malformed_body', send({ body: 'hello' })),
    bad('signed, and empty', 'malformed_body', send({ body: '' })),
    bad('signed, and no alert', 'malformed_body', send({ body: '{"type":"watchdog.missed"}' })),
    bad('signed, with a member twice', 'malformed_body', send({ body: BODY.replace('{', '{"type":"a.b",') })),
    bad('no receipt', 'bad_receipt', send({ body: JSON.stringify(alert) }), all),
    bad(
      'the receipt of another alert',
      'bad_receipt',
      withReceipt({ ...subject, subject_sha256: sha256('else') }),
      all,
    ),
    bad('a receipt that an account had made', 'bad_receipt', withReceipt({ ...subject, requested_by: 'mallory' }), all),
    bad('a receipt by a key that is not pinned', 'bad_receipt', withReceipt({ ...subject, key_id: 9 }), all),
  ]
}

if (import.meta.main) console.log(JSON.stringify({ options: ALERT_OPTIONS, cases: alertCases() }, null, 2))
