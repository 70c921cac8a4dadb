// What an account may ask about itself.
import { z } from 'zod'
import { PROVIDERS } from '../billing/provider.ts'
import { findStanding, type Subscription } from '../billing/subscriptions.ts'
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { defineAccountOperation, defineExchange, Reply } from '../operation.ts'
import {
  addApiKey,
  apiKeyRow,
  endApiKey,
  insertAccount,
  listApiKeys,
  RESERVED_HANDLES,
  refuseReserved,
} from './account.ts'
import { countRegistration } from './registrations.ts'
import { CALLER_LIMITS, LIMITS, TIERS, type TierLimits, tierLimit, UNUSED_ACCOUNT_DAYS } from './tiers.ts'
import { findUsage } from './usage.ts'

const handle = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be 1 to 64 of a-z 0-9 - _, starting with a letter or digit')
  .describe('Public: it is the requested_by of your receipts.')
const limits = z.strictObject({
  active_leases: z.int().describe('At a time.'),
  lease_acts_per_day: z.int().describe('Grants, renewals and revocations; a revocation is never refused.'),
  receipts_per_day: z.int(),
  watchdogs: z.int(),
  watchdog_alerts_per_day: z.int(),
  citation_watches: z.int(),
  journal_slots: z.int(),
  journal_bytes: z.int().describe('Of all slots together; follows from their number.'),
  api_keys: z.int().describe('At a time.'),
  heartbeats_per_minute: z.int(),
  receipts_per_minute: z.int(),
  calls_per_minute: z.int().describe('All other calls.'),
  checkouts_per_hour: z.int().describe('Pages of checkout and billing portal.'),
}) satisfies z.ZodType<TierLimits>
export const tierOutput = z.enum(TIERS)
export const limitsOutput = limits

export const register = defineExchange({
  name: 'register',
  summary: 'Register an account',
  description:
    'The API key is shown once. There is no recovery of a lost key. Reserved, and answered 409 like a taken handle: ' +
    `${RESERVED_HANDLES.join(', ')}. At most ${CALLER_LIMITS.registrations_per_day} accounts a day (UTC) from one address. ` +
    `An account whose keys were never used is deleted after ${UNUSED_ACCOUNT_DAYS} days.`,
  method: 'POST',
  path: '/v1/register',
  family: 'control',
  access: 'public',
  statuses: [201],
  errors: ['handle_taken', 'daily_limit'],
  kind: 'exchange',
  input: z.strictObject({ handle }),
  output: z.strictObject({ handle, api_key: z.string(), tier: tierOutput, limits }),
  async run(input, { api, credentials }) {
    refuseReserved(input.handle)
    const apiKey = await makeAccount(input.handle, credentials.address, api)
    const body = { handle: input.handle, api_key: apiKey, tier: 'free' as const, limits: LIMITS.free }
    return new Reply(body, { status: 201 })
  },
})

/** Throws AppError `handle_taken`, `daily_limit`, `rate_limited`. What makes no account counts against no limit. */
async function makeAccount(handle: string, address: string, api: Api): Promise<string> {
  await api.limits.spendRegistration()
  try {
    return await transact(api.db, async (tx) => {
      const { apiKey } = await insertAccount(tx, handle)
      // With the limits per address off, addresses say nothing: behind a proxy they are all its own.
      if (api.config.rateLimitPerMinute > 0) await countRegistration(tx, api.secrets.address, address)
      return apiKey
    })
  } catch (error) {
    await api.limits.giveBackRegistration()
    throw error
  }
}

const kind = z.enum(['full', 'read_only', 'heartbeat'])
const label = z
  .string()
  .max(100)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'must be text without control characters')

export const listKeysOperation = defineAccountOperation({
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
  run: async (_input, { tx, caller }) => ({ api_keys: [...(await listApiKeys(tx, caller.accountId))] }),
})

export const createKey = defineAccountOperation({
  name: 'create_api_key',
  summary: 'Make another API key',
  description:
    'To rotate: make a new key, put it in place, then end the old one, at once or after an overlap. A key counts until it ' +
    'has ended.',
  method: 'POST',
  path: '/v1/api-keys',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  statuses: [201],
  errors: ['tier_limit'],
  kind: 'transaction',
  input: z.strictObject({ kind, label: label.optional() }),
  output: z.strictObject({ id: z.uuid(), kind, api_key: z.string() }),
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

export const revokeKey = defineAccountOperation({
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

const subscriptionOutput = z.strictObject({
  status: z.string().describe('As Stripe names it: active, past_due, unpaid, ...'),
  tier: tierOutput.describe('Of its price. What it gives may be less: see status and payment.'),
  payment: z.enum(['kept', 'refunded', 'disputed']).describe('What became of what was paid last.'),
  current_period_end: z.string().nullable(),
  cancel_at_period_end: z.boolean().describe('It ends by itself.'),
  provider: z.enum(PROVIDERS),
})

export const getUsage = defineAccountOperation({
  name: 'get_usage',
  summary: 'The tier, its limits, and how much of them is used',
  description:
    'Days are UTC days: receipts_today and lease_acts_today start again at resets_at. What the service signs by itself ' +
    'does not count.',
  method: 'GET',
  path: '/v1/usage',
  family: 'control',
  access: 'account',
  scope: 'account:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({
    handle,
    tier: tierOutput,
    limits,
    used: z.strictObject({
      active_leases: z.int(),
      lease_acts_today: z.int(),
      receipts_today: z.int(),
      watchdogs: z.int(),
      watchdog_alerts_today: z.int(),
      citation_watches: z.int(),
      journal_slots: z.int(),
      journal_bytes: z.int(),
      api_keys: z.int(),
    }),
    resets_at: z.string().describe('The next UTC midnight.'),
    subscription: subscriptionOutput.nullable().describe('The one that has not ended, if there is one.'),
  }),
  async run(_input, { tx, caller, api }) {
    const { resets_at, ...used } = await findUsage(tx, caller.accountId, api.now())
    // Read here and not taken from the caller: the tier is to agree with the subscription beside it.
    const { handle, tier, subscription } = await findStanding(tx, api.billing?.name, caller.accountId, api.now())
    const body = { handle, tier, limits: LIMITS[tier], used, resets_at }
    return new Reply(
      { ...body, subscription: subscription && describeSubscription(subscription) },
      { headers: { 'cache-control': 'no-store' } },
    )
  },
})

function describeSubscription(subscription: Subscription): z.output<typeof subscriptionOutput> {
  const { status, tier, payment, current_period_end, cancel_at_period_end, provider } = subscription
  return {
    status,
    tier,
    payment,
    current_period_end: current_period_end?.toISOString() ?? null,
    cancel_at_period_end,
    provider,
  }
}
