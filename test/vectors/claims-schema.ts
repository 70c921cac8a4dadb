// The JSON Schema of a result of several claims, as the service's own answer to verify-claims has it. `node
// test/vectors/claims-schema.ts` writes it.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { claimsResult } from '../../server/interface/claims.ts'

export const CLAIMS_SCHEMA = 'claims-result.schema.json'

export const claimsSchema = { ...z.toJSONSchema(claimsResult), title: 'Result of POST /api/agent/v1/verify-claims' }

if (import.meta.main)
  writeFileSync(join(import.meta.dirname, CLAIMS_SCHEMA), `${JSON.stringify(claimsSchema, null, 2)}\n`)
