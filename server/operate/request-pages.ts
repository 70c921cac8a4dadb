// The list of all requests on the dashboard: in pages, newest first, with a search. A page costs as much on the last of a
// million requests as on the first.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { type State, states } from '../verification/request.ts'
import { sourceHost } from './stored-json.ts'

export interface RequestSearch {
  /** An id or its beginning, the hash of a transaction, a payer's address, or the host of a source. */
  text?: string
  state?: State
  /** Error code of failed requests. */
  code?: string
  /** The last request of the page before. */
  after?: Position
  limit: number
}

export interface Position {
  /** As Postgres writes it, to the microsecond. */
  created_at: string
  id: string
}

const row = z.object({
  id: z.string(),
  state: z.enum(states),
  code: z.string().nullable(),
  host: z.string().nullable(),
  payer: z.string().nullable(),
  created_at: z.date(),
  changed_at: z.date(),
  /** Of the position. */
  created_text: z.string(),
})
export type ListedRequest = z.output<typeof row>

export interface RequestPage {
  requests: readonly ListedRequest[]
  /** Give it as `after` for the next page; null at the end. */
  next: Position | null
}

type Fragment = ReturnType<typeof sql.fragment>

const host = sourceHost(sql.fragment`r.body`)

/** The states of each of three indexes; together they are all states. The conditions are those of the indexes. */
const PARTS: Fragment[] = [
  sql.fragment`r.state in ('completed', 'failed', 'expired')`,
  sql.fragment`r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`,
  sql.fragment`r.state in ('quoted', 'unpaid') and r.body is not null`,
]

export async function pageRequests(db: Database, search: RequestSearch): Promise<RequestPage> {
  const { state = null, code = null, after, limit } = search
  const wanted = sql.fragment`
    (${state}::text is null or r.state = ${state}) and (${code}::text is null or r.error ->> 'code' = ${code})
    and ${matching(search.text)}
    and (${after?.created_at ?? null}::timestamptz is null
         or (r.created_at, r.id) < (${after?.created_at ?? null}::timestamptz, ${after?.id ?? null}::uuid))`
  const parts = PARTS.map(
    (part) => sql.fragment`
    (select r.id, r.created_at from verification_requests r where ${part} and ${wanted}
     order by r.created_at desc, r.id desc limit ${limit + 1})`,
  )
  const found = await db.any(sql.type(row)`
    select r.id::text, r.state, r.error ->> 'code' code, ${host} host, r.payer,
           r.created_at, r.changed_at, r.created_at::text created_text
    from (select id from (${sql.join(parts, sql.fragment` union all `)}) parts
          order by created_at desc, id desc limit ${limit + 1}) listed
    join verification_requests r using (id) order by r.created_at desc, r.id desc`)
  const requests = found.slice(0, limit)
  const last = requests.at(-1)
  return { requests, next: found.length > limit && last ? { created_at: last.created_text, id: last.id } : null }
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const EVM_ADDRESS = /^0x[0-9a-f]{40}$/i
const EVM_TRANSACTION = /^0x[0-9a-f]{64}$/i
/** Base58 of 32 bytes, and of a signature of 64. */
const SOLANA_ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
const SOLANA_TRANSACTION = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/

function matching(given: string | undefined): Fragment {
  const text = given?.trim() ?? ''
  if (text === '') return sql.fragment`true`
  const prefix = text.toLowerCase()
  if (/^[0-9a-f]{8}(-[0-9a-f]{0,4}){0,3}$|^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{0,12}$/.test(prefix))
    return sql.fragment`r.id between ${prefix + FIRST_ID.slice(prefix.length)}::uuid and ${prefix + LAST_ID.slice(prefix.length)}::uuid`
  if (EVM_ADDRESS.test(text)) return sql.fragment`lower(r.payer) = ${prefix}`
  if (SOLANA_ADDRESS.test(text)) return sql.fragment`r.payer = ${text}`
  if (EVM_TRANSACTION.test(text) || SOLANA_TRANSACTION.test(text))
    return sql.fragment`r.id in (select request_id from payment_ledger where transaction in (${text}, ${prefix}))`
  return sql.fragment`${host} = ${prefix}`
}
