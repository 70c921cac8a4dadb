// Purchases with captures on, and their evidence packages.
import { randomUUID } from 'node:crypto'
import { unzipSync } from 'fflate'
import { type PurchaseResult, purchaseResult } from '../../server/interface/claims.ts'
import { outcomeOf } from '../api-harness.ts'
import { payingFetch, SELLERS, type Sold, type System } from '../system.ts'

export interface Bought {
  result: PurchaseResult
  /** The result as it was served. */
  bytes: string
  token: string
}

export async function buyFrom(
  system: Pick<System, 'url'>,
  body: { source_url: string; options?: object } & Record<string, unknown>,
  sold: Sold = 'source',
): Promise<Bought> {
  const answer = await payingFetch()(system.url(SELLERS[sold]), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
    body: JSON.stringify(body),
  })
  const outcome = await outcomeOf(answer)
  const bytes = await outcome.text()
  if (outcome.status !== 200) throw new Error(`${outcome.status} ${bytes}`)
  const token = outcome.headers.get('x-service-recovery-token') ?? ''
  return { result: purchaseResult.parse(JSON.parse(bytes)), bytes, token }
}

export function askEvidence(
  { url }: Pick<System, 'url'>,
  { result, token }: Pick<Bought, 'result' | 'token'>,
  sold: Sold = 'source',
) {
  return fetch(url(`${SELLERS[sold]}/${result.request_id}/evidence`), { headers: { authorization: `Bearer ${token}` } })
}

/** The files of a package. */
export async function openPackage(answer: Response) {
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  const whole = Buffer.from(await answer.arrayBuffer())
  const files = Object.fromEntries(Object.entries(unzipSync(whole)).map(([name, bytes]) => [name, Buffer.from(bytes)]))
  const read = (name: string): Buffer => {
    const bytes = files[name]
    if (!bytes) throw new Error(`the package has no ${name}`)
    return bytes
  }
  return { whole, files, read, json: (name: string) => JSON.parse(read(name).toString('utf8')) }
}
