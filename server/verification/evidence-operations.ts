// The evidence package of a result: everything that its observation was made of, for the holder of the recovery token.
import { z } from 'zod'
import { addressKey, networkKey } from '../accounts/address-key.ts'
import type { Api } from '../context.ts'
import { AppError, retrySoon } from '../errors.ts'
import type { PackageOrder } from '../evidence/package-thread.ts'
import { findCapture, type SignedCapture } from '../evidence/store.ts'
import { purchaseResult } from '../interface/claims.ts'
import { type Call, defineExchange, Reply } from '../operation.ts'
import { describeReceipt } from '../receipts/operations.ts'
import { findTimestampsOver } from '../receipts/timestamps.ts'
import { isThreadShortage, PAGE_LIMITS, type PageOptions } from '../threads/pool.ts'
import { buildSemaphore } from '../threads/semaphore.ts'
import { findResult } from './lookup.ts'
import { isRecoveryToken } from './recovery-token.ts'

/** Media type of WACZ. */
const WACZ = 'application/wacz'

const described = {
  description:
    'A WACZ file: each request and response as it crossed the connection, who answered, and a manifest of their digests with its ' +
    'receipt in the chain. Needs the recovery token of the request as bearer token. 404 where nothing was kept of the page, or ' +
    'nothing is kept any more.',
  method: 'GET',
  family: 'verification',
  access: 'recovery',
  kind: 'exchange',
  rawAnswer: WACZ,
  input: z.object({ request_id: z.string() }),
  output: z.custom<Buffer>((value) => value instanceof Buffer),
} as const

export const getEvidence = defineExchange({
  ...described,
  name: 'get_evidence',
  summary: 'The evidence package of a result of verify-source',
  path: '/api/agent/v1/verify-source/{request_id}/evidence',
  run: (input, call) => answerPackage(input, call, 'source'),
})

export const getClaimsEvidence = defineExchange({
  ...described,
  name: 'get_claims_evidence',
  summary: 'The evidence package of a result of verify-claims',
  path: '/api/agent/v1/verify-claims/{request_id}/evidence',
  run: (input, call) => answerPackage(input, call, 'source_claims'),
})

const THREAD = new URL('../evidence/package-thread.ts', import.meta.url)

/** Packages that a process builds at the same time: each takes several times the size of its page. */
const MAX_BUILDING = 2
const building = buildSemaphore(MAX_BUILDING)

async function answerPackage(
  input: { request_id: string },
  { api, credentials, options }: Call,
  type: 'source' | 'source_claims',
): Promise<Reply<never>> {
  const id = input.request_id.toLowerCase()
  const none = () =>
    new AppError('not_found', 'There is no evidence of such a request, or the recovery token is not its own.')
  if (!z.uuid().safeParse(id).success || !isRecoveryToken(api.secrets.recovery, id, credentials.bearer ?? ''))
    throw none()
  // No page is read, so the network stands in the place of a domain.
  const lane = { payer: addressKey(credentials.address), domain: networkKey(credentials.address), isFree: false }
  const { signal } = options
  const bytes = await building.pass(() => buildFor(id, type, api, { signal, lane }), signal, lane)
  if (!bytes) throw none()
  return Reply.bytes(bytes, {
    headers: {
      'content-type': WACZ,
      'content-disposition': `attachment; filename="evidence-${id}.wacz"`,
      'cache-control': 'private, no-store',
    },
  })
}

async function buildFor(
  id: string,
  type: 'source' | 'source_claims',
  api: Api,
  options: PageOptions,
): Promise<Buffer | null> {
  const row = await findResult(api.db, id, api.config)
  if (!row?.capture_id) return null
  const result = purchaseResult.parse(JSON.parse(row.result.toString('utf8')))
  if (result.verification_type !== type) return null
  const captured = await findCapture(api.db, api.secrets.capture, row.capture_id, api.config.capture)
  if (!captured || !isOf(captured, result)) return null
  const { receipts, stamps } = await proveBoth(api, result.receipt.attestation.serial, captured.serial)
  const { extraction } = manifestOf(captured)
  const { checked_at, methodology_version, source } = result
  const order: PackageOrder = {
    captureId: captured.id,
    packed: alone(captured.packed),
    manifest: alone(captured.manifest),
    receipts,
    stamps: stamps.map(({ note, reply }) => ({ note, reply: alone(reply) })),
    result: { final_url: source.final_url, checked_at, extraction, methodology_version },
  }
  try {
    const limits = { ...PAGE_LIMITS, ...options }
    const bytes = await api.parsing.threads.run<Uint8Array>(THREAD, 'buildOrdered', order, limits)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  } catch (error) {
    if (!isThreadShortage(error)) throw error
    const message = 'More packages are waiting to be built than can be taken on.'
    throw new AppError('capacity_exceeded', message, { headers: retrySoon(), cause: error })
  }
}

/**
 * The bytes in memory of their own: a message to a thread has all the memory that its bytes lie in, and Node keeps short ones together
 * with others.
 */
const alone = (bytes: Buffer) => (bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes))

/**
 * Both receipts with proofs: to the first head after both of them that an authority has stamped, else to the head of now. A proof to
 * another head than the stamped one would not say when the receipts existed.
 */
async function proveBoth({ db, reader }: Api, own: number, capture: number) {
  const stamps = await findTimestampsOver(db, Math.max(own, capture))
  // Read after the stamps, so that it is not of a smaller tree.
  const head = await reader.head()
  const of = stamps[0] && { ...head, checkpoint: stamps[0].note }
  const receipt = (serial: number) => describeReceipt(reader, serial, of ?? head, stamps[0]?.tree_size)
  const [result, captured] = await Promise.all([receipt(own), receipt(capture)])
  return { receipts: { result, capture: captured }, stamps }
}

const manifestShape = z.object({ checked_at: z.string(), text_sha256: z.string(), extraction: z.string() })

const manifestOf = ({ manifest }: SignedCapture) => manifestShape.parse(JSON.parse(manifest.toString('utf8')))

/** A worker of the release before this one replaces an observation without its capture. */
function isOf(captured: SignedCapture, result: z.output<typeof purchaseResult>): boolean {
  const { checked_at, text_sha256 } = manifestOf(captured)
  return checked_at === result.checked_at && text_sha256 === result.source.text_sha256
}
