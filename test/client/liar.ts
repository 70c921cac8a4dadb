// A service that lies where a test tells it to: it answers over HTTP, its results are properly signed, and it counts the payments that
// arrive. It has no database and needs none: what is tested is what a buyer does.
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { VerificationResult } from '../../client/verification.ts'
import { TERMS } from './counterpart.ts'
import { attest, issueResult, jcs, KEY_ID, pubkeyHex, sha256 } from './issuer.ts'

export const PAGE = 'https://example.org/bridge'
export const PIN = ['--pin', `${KEY_ID}:${pubkeyHex}`]
/** As a service gives it: no output may show it. */
export const RECOVERY_TOKEN = `rt_${'5e'.repeat(24)}`
/** Of no account. */
const SECRET = '7c'.repeat(32)

export interface Asked {
  source_url: string
  claim: string
}

export interface Reply {
  status: number
  body: unknown
  headers?: Record<string, string>
}

/** One lie: what is answered in place of the truth, where it lies. */
export interface Lie {
  capabilities?: () => Reply
  unpaid?: () => Reply
  paid?: (asked: Asked) => Reply
}

export const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

/** A signed result that supports what was asked. `change` is made before it is signed. */
export function truth({ source_url, claim }: Asked, change: (draft: VerificationResult) => void = () => {}) {
  return issueResult({
    result(draft) {
      Object.assign(draft, { claim, claim_support: 'supports', evidence: draft.evidence.slice(0, 1) })
      draft.source.requested_url = source_url
      change(draft as VerificationResult)
    },
  })
}

/** The same result under the receipt of a stranger's key. */
export function signedByStranger(asked: Asked): VerificationResult {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 0x11)])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const pubkey_hex = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  const result = truth(asked)
  const { receipt_hash: _hash, sig_ed25519_hex: _signature, ...own } = result.receipt.attestation
  const { receipt_hash: _other, sig_ed25519_hex: _one, ...signed } = attest({ ...own, pubkey_hex })
  const bytes = Buffer.from(jcs(signed))
  const attestation = {
    ...signed,
    receipt_hash: sha256(bytes),
    sig_ed25519_hex: sign(null, bytes, key).toString('hex'),
  }
  return { ...result, receipt: { ...result.receipt, attestation } }
}

const CAPABILITIES = {
  payment_mode: 'testnet',
  networks: [TERMS.accepts[0]?.network],
  price: { amount_atomic: '30000', currency: 'USDC', decimals: 6, usd: '0.03' },
}

export function refusal(status: number, code: string, more: Partial<Reply> = {}): Reply {
  const kind = status === 402 ? 'payment_required' : status === 202 ? 'pending' : 'failed'
  const error = { code, message: `about ${code}`, retryable: true }
  return { status, body: { schema_version: '1.0.0', status: kind, error }, ...more }
}

export const askFor = (terms: object, code = 'payment_required') =>
  refusal(402, code, { headers: { 'payment-required': base64(terms) } })

export async function openLiar(t: Test) {
  const liar = {
    lie: {} as Lie,
    baseUrl: '',
    /** The distinct payments for each claim, as they arrived. */
    payments: new Map<string, Set<string>>(),
    /** Called after each request was received, before it is answered. */
    onRequest: () => {},
  }
  const truthful = {
    capabilities: (): Reply => ({ status: 200, body: CAPABILITIES }),
    unpaid: () => askFor(TERMS),
    paid: (asked: Asked): Reply => ({
      status: 200,
      body: truth(asked),
      headers: { 'x-service-recovery-token': RECOVERY_TOKEN },
    }),
  }
  const answer = async (method: string, path: string, body: string, payment: string | undefined): Promise<Reply> => {
    const told = { ...truthful, ...liar.lie }
    if (path === '/v1/keys') return { status: 200, body: { keys: [{ ...KEY }] } }
    if (method === 'GET' && path.endsWith('/capabilities')) return told.capabilities()
    if (method !== 'POST') return refusal(404, 'not_found')
    if (path === '/v1/quote-check') return { status: 200, body: longQuoteCheck(JSON.parse(body)) }
    const asked = JSON.parse(body) as Asked
    if (payment === undefined) return told.unpaid()
    const known = liar.payments.get(asked.claim) ?? new Set()
    liar.payments.set(asked.claim, known.add(payment))
    return told.paid(asked)
  }
  const server = createServer(async (request, response: ServerResponse) => {
    const body = await text(request).catch(() => null)
    if (body === null) return
    liar.onRequest()
    const { method = '', url = '', headers } = request
    const said = await answer(method, url, body, headers['payment-signature']?.toString())
    const bytes = Buffer.isBuffer(said.body) || typeof said.body === 'string' ? said.body : JSON.stringify(said.body)
    response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers }).end(bytes)
  })
  liar.baseUrl = await listen(t, server)
  const folder = mkdtempSync(join(tmpdir(), 'countersign-liar-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = (name: string) => join(folder, name)
  writeFileSync(path('wallet.key'), `0x${SECRET}\n`, { mode: 0o600 })
  return {
    liar,
    path,
    secret: SECRET,
    paidFor: (claim: string) => liar.payments.get(claim)?.size ?? 0,
    /** What the buyer wrote to its folder, all files together. */
    written: (name: string) =>
      readdirSync(path(name), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
        .join('\n'),
  }
}

/** Every quote is nearly on the page, whose passage and link are as long as they can be. */
function longQuoteCheck({ source_url, quotes }: { source_url: string; quotes: string[] }) {
  const nearest = { text: 'near and long '.repeat(70), start: 0, end: 980, similarity: 0.9 }
  const found = {
    match: 'near',
    start: null,
    end: null,
    nearest,
    fragment_url: `${source_url}#:~:text=${'l'.repeat(400)}`,
  }
  const source = {
    requested_url: source_url,
    final_url: `${source_url}${'u'.repeat(3000)}`,
    checked_at: '2026-11-20T09:00:00Z',
  }
  const digests = { content_sha256: sha256('content'), text_sha256: sha256('text') }
  return {
    source: { ...source, ...digests },
    quotes: quotes.map((quote) => ({ quote, quote_sha256: sha256(quote), ...found })),
  }
}

const KEY = {
  key_id: KEY_ID,
  use: 'receipt',
  pubkey_hex: pubkeyHex,
  status: 'active',
  first_serial: 1,
  last_serial: null,
}

/** The address of the server, which ends with the test. */
export async function listen(t: Test, server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
