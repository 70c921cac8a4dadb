// For whom a worker reads and judges a page: the lane in which its work waits for threads, for turns at origins and for the
// model (see server/threads/lanes.ts).
import type { Core } from '../context.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import type { Lane } from '../threads/pool.ts'
import type { WorkingRequest } from './request.ts'

interface Tools {
  config: Pick<Core['config'], 'fixtures'>
}

/** The lane of a purchase. */
export function purchaseLane({ payment, body }: Pick<WorkingRequest, 'payment' | 'body'>, { config }: Tools): Lane {
  const { payer } = payment.identity
  return { payer, domain: sourceDomain(new URL(body.source_url), config.fixtures), isFree: false }
}

/** The lane of a page that is read for an account, which no purchase pays for. */
export function freeLane(accountId: string, url: string, { config }: Tools): Lane {
  return { payer: accountId, domain: sourceDomain(new URL(url), config.fixtures), isFree: true }
}
