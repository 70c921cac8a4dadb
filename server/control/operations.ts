// What an account may ask about itself.
import { z } from 'zod'
import { PROVIDERS } from '../billing/provider.ts'
import { findStanding, type Subscription } from '../billing/subscriptions.ts'
import { AppError } from '../errors.ts'
import { defineAccountOperation, defineOperation, Reply } from '../operation.ts'
import { apiKeyRow, endApiKey, insertAccount, insertApiKey, listApiKeys } from './accounts.ts'
import { LIMITS, TIERS } from './tiers.ts'
import { findUsage } from './usage.ts'

const handle = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be 1 to 64 of a-z 0-9 - _, starting with a letter or digit')
  .describe('Public: it is the requested_by of your receipts.')
const limits = z.strictObject({
  active_leases: z.int(),
  receipts_per_day: z.int(),
  watchdogs: z.int(),
  watchdog_alerts_per_day: z.int(),
  citation_watches: z.int(),
  journal_slots: z.int(),
})
export const tierOutput = z.enum(TIERS)
export const limitsOutput = limits

export const register = defineOperation({
  name: 'register',
  summary: 'Register an account',
  description: 'The API key is shown once. There is no recovery of a lost key.',
  method: 'POST',
  path: '/v1/register',
  family: 'control',
  access: 'public',
  statuses: [201],
  errors: ['handle_taken'],
  kind: 'transaction',
  input: z.strictObject({ handle }),
  output: z.strictObject({ handle, api_key: z.string(), tier: tierOutput, limits }),
  async run(input, { tx }) {
    const { apiKey } = await insertAccount(tx, input.handle)
    return new Reply(
      { handle: input.handle, api_key: apiKey, tier: 'free' as const, limits: LIMITS.free },
      { status: 201 },
    )
  },
})

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
  description: 'To rotate: make a new key, put it in place, then end the old one, at once or after an overlap.',
  method: 'POST',
  path: '/v1/api-keys',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  statuses: [201],
  kind: 'transaction',
  input: z.strictObject({ kind, label: label.optional() }),
  output: z.strictObject({ id: z.uuid(), kind, api_key: z.string() }),
  async run(input, { tx, caller }) {
    const { id, apiKey } = await insertApiKey(tx, {
      accountId: caller.accountId,
      kind: input.kind,
      label: input.label ?? null,
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
    'Days are UTC days: receipts_today starts again at resets_at. What the service signs by itself does not count.',
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
      receipts_today: z.int(),
      watchdogs: z.int(),
      watchdog_alerts_today: z.int(),
      citation_watches: z.int(),
      journal_slots: z.int(),
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
