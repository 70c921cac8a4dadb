// Operations of accounts: registration and API keys.
import { z } from 'zod'
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { isPlainLine, PLAIN_LINE } from '../interface/scalars.ts'
import { defineAccountOperation, defineExchange, Reply } from '../operation.ts'
import { accountHandle } from './account.ts'
import { addApiKey, apiKeyRow, endApiKey, findApiKeys } from './api-keys.ts'
import { countRegistration, insertAccount, RESERVED_HANDLES, refuseReserved } from './registration.ts'
import { keyKind } from './scopes.ts'
import { CALLER_LIMITS, LIMITS, TIERS, tierLimit, tierLimits, UNUSED_ACCOUNT_DAYS } from './tiers.ts'

export const register = defineExchange({
  name: 'register',
  summary: 'Register an account',
  description:
    'The API key is shown once. There is no recovery of a lost key. Reserved handles are answered 409: ' +
    `${RESERVED_HANDLES.join(', ')}. At most ${CALLER_LIMITS.registrations_per_day} accounts a day (UTC) from one address. ` +
    `An account whose keys were never used is deleted after ${UNUSED_ACCOUNT_DAYS} days.`,
  method: 'POST',
  path: '/v1/register',
  family: 'control',
  access: 'public',
  statuses: [201],
  errors: ['handle_taken', 'daily_limit'],
  kind: 'exchange',
  input: z.strictObject({ handle: accountHandle }),
  output: z.strictObject({ handle: accountHandle, api_key: z.string(), tier: z.enum(TIERS), limits: tierLimits }),
  async run(input, { api, credentials }) {
    refuseReserved(input.handle)
    const apiKey = await makeAccount(input.handle, credentials.address, api)
    const body = { handle: input.handle, api_key: apiKey, tier: 'free' as const, limits: LIMITS.free }
    return new Reply(body, { status: 201 })
  },
})

/** Throws AppError `handle_taken`, `daily_limit`, `rate_limited`. A registration that fails counts against no limit. */
async function makeAccount(handle: string, address: string, api: Api): Promise<string> {
  const giveBack = await api.limits.spendRegistration(address)
  try {
    return await transact(api.db, async (tx) => {
      const { apiKey } = await insertAccount(tx, handle)
      // 0 turns the limits per address off: behind a proxy that is not trusted, every caller has the proxy's address.
      if (api.config.rateLimitPerMinute > 0) await countRegistration(tx, api.secrets.address, address)
      return apiKey
    })
  } catch (error) {
    await giveBack()
    throw error
  }
}

const label = z.string().max(100).refine(isPlainLine, PLAIN_LINE)

export const listApiKeys = defineAccountOperation({
  name: 'list_api_keys',
  summary: "The account's API keys, without the keys themselves",
  method: 'GET',
  path: '/v1/api-keys',
  family: 'control',
  access: 'account',
  scope: 'account:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ api_keys: z.array(apiKeyRow) }),
  run: async (_input, { tx, caller }) => ({ api_keys: [...(await findApiKeys(tx, caller.accountId))] }),
})

export const createApiKey = defineAccountOperation({
  name: 'create_api_key',
  summary: 'Make another API key',
  description:
    'To rotate: make a new key, put it in place, then end the old one, at once or after an overlap. A key counts ' +
    'against the limit of the tier until it has ended.',
  method: 'POST',
  path: '/v1/api-keys',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  statuses: [201],
  errors: ['tier_limit'],
  kind: 'transaction',
  input: z.strictObject({ kind: keyKind, label: label.optional() }),
  output: z.strictObject({ id: z.uuid(), kind: keyKind, api_key: z.string() }),
  async run(input, { tx, caller }) {
    const { accountId, tier } = caller
    const key = { accountId, kind: input.kind, label: input.label ?? null }
    const { id, apiKey } = await addApiKey(tx, key, {
      limit: LIMITS[tier].api_keys,
      refuse: () => tierLimit('api_keys', tier),
    })
    return new Reply({ id, kind: input.kind, api_key: apiKey }, { status: 201 })
  },
})

const MAX_OVERLAP_S = 7 * 86_400

export const revokeApiKey = defineAccountOperation({
  name: 'revoke_api_key',
  summary: 'End an API key, at once or after an overlap',
  method: 'POST',
  path: '/v1/api-keys/{id}/revoke',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  errors: ['not_found'],
  kind: 'transaction',
  input: z.strictObject({ id: z.string(), after_s: z.int().min(0).max(MAX_OVERLAP_S).optional() }),
  output: z.strictObject({ id: z.string(), ends_at: z.string() }),
  async run({ id, after_s = 0 }, { tx, caller, api }) {
    const ends = new Date(api.now() + after_s * 1000)
    const known =
      z.uuid().safeParse(id).success && (await endApiKey(tx, caller.accountId, id, after_s > 0 ? ends : null))
    if (!known) throw new AppError('not_found', 'This account has no such API key.')
    api.callers.clear()
    return { id, ends_at: ends.toISOString() }
  },
})
