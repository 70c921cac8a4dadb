// Members of stored JSON that may hold U+0000, which a claim may have. Postgres cannot take any member out of such JSON, so these are read
// from its text. Within a string of JSON each quotation mark has a backslash before it, so no string can pass for a member.
import { sql } from '../db/pool.ts'

type Fragment = ReturnType<typeof sql.fragment>

/** The host of the source URL, with its port if the URL names one. @param body of a request: json, may be null */
export const sourceHost = (body: Fragment): Fragment =>
  sql.fragment`substring(${body}::text from '"source_url" ?: ?"https://([^/"]*)')`

/** The attestation, which holds no other object. @param result the bytes of a completed result */
export const attestationOf = (result: Fragment): Fragment =>
  sql.fragment`substring(split_part(convert_from(${result}, 'UTF8'), '"attestation":', 2) from '^[^}]*}')::json`
