// Quote checks of callers without an account, who are told apart by their address, and the reports that such callers have checked.
import { createHmac, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { networkKey } from '../accounts/address-key.ts'
import { shareOf } from '../accounts/shared-budget.ts'
import { ADDRESS_LIMITS } from '../accounts/tiers.ts'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Call, Reply } from '../operation.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import { parsePublicUrl } from '../outbound/url-policy.ts'
import { addressKeyOf } from '../verification/admission/in-flight-limits.ts'
import { admitCheck, countToday } from './admission.ts'
import { answerCheck } from './operations.ts'
import type { QuoteCheckInput } from './quote-check.ts'

/** The id under which checks of this address are stored and counted: a UUID of version 8. */
export function ownerOf({ api, credentials }: Pick<Call, 'api' | 'credentials'>): string {
  return idOf(addressKeyOf(credentials.address, api.secrets.address))
}

/** The id under which something is counted for the network of the caller. */
function networkIdOf(what: string, { api, credentials }: Pick<Call, 'api' | 'credentials'>): string {
  const named = `${what} of the network ${networkKey(credentials.address)}`
  return idOf(createHmac('sha256', api.secrets.address).update(named).digest().subarray(0, 16))
}

function idOf(key: Buffer): string {
  const bytes = Buffer.from(key)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** As the operation for accounts: 200 with the answer, or 202, and the id of the check. Throws its errors, with the limits of addresses. */
export async function checkQuotesOf(
  input: QuoteCheckInput,
  call: Call,
  ownerId: string = ownerOf(call),
): Promise<{ id: string; reply: Reply<never> }> {
  const { fixtures } = call.api.config
  const domain = sourceDomain(parsePublicUrl(input.source_url, fixtures), fixtures)
  const owner = { id: ownerId, tier: null, networkId: networkIdOf('pages', call) }
  const id = await transact(call.api.db, (tx) => admitCheck(tx, { owner, input, domain }))
  return { id, reply: await answerCheck(id, ownerId, call) }
}

/** As the migration says. */
export const REPORT_KEPT_MS = 86_400_000

const reportRow = z.object({ id: z.string(), owner_id: z.string(), markdown: z.string(), created_at: z.date() })
export type StoredReport = z.output<typeof reportRow>

/** Keeps a report for a day, under an id that cannot be guessed. Throws AppError `rate_limited`. */
export function storeReport(markdown: string, call: Call): Promise<StoredReport> {
  const owner = ownerOf(call)
  // As Markdown has it read. The column takes no U+0000.
  const text = markdown.replaceAll('\0', '\ufffd')
  return transact(call.api.db, async (tx) => {
    await requireRoom(tx, owner, networkIdOf('reports', call))
    return tx.one(sql.type(reportRow)`
      insert into report_checks (id, owner_id, markdown) values (${randomUUID()}, ${owner}, ${text})
      returning id::text, owner_id::text, markdown, created_at`)
  })
}

async function requireRoom(tx: Tx, owner: string, networkId: string) {
  const { reports, reports_per_network, all_reports } = ADDRESS_LIMITS
  const { n, all } = await tx.one(sql.type(z.object({ n: z.number(), all: z.number() }))`
    select count(*) filter (where owner_id = ${owner} and expires_at > now()) n, count(*) "all" from report_checks`)
  const ofNetwork = await countToday(tx, networkId)
  const refuse = (message: string) => new AppError('rate_limited', message, { headers: { 'retry-after': '3600' } })
  if (n >= reports) throw refuse(`An address can have ${reports} reports checked as tasks a day.`)
  if (ofNetwork > reports_per_network)
    throw refuse(`A network can have ${reports_per_network} reports checked as tasks a day.`)
  if (all >= shareOf(all_reports, ofNetwork)) throw refuse('Too many reports are being checked.')
}

/** Null for a report that is not kept, or not any more. */
export function findReport(db: Database, id: string): Promise<StoredReport | null> {
  return db.maybeOne(sql.type(reportRow)`
    select id::text, owner_id::text, markdown, created_at from report_checks where id = ${id} and expires_at > now()`)
}

export async function dropReport(db: Database, id: string): Promise<void> {
  await db.query(sql.type(nothing)`delete from report_checks where id = ${id}`)
}
