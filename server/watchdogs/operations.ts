// The operations on watchdogs and on their heartbeats.
import { z } from 'zod'
import { LIMITS, tierLimit } from '../accounts/tiers.ts'
import { defineAlertOperations, fresh } from '../alerts/operations.ts'
import { readWebhookUrl, webhookSecret, webhookUrl } from '../alerts/webhooks.ts'
import { AppError } from '../errors.ts'
import { isPlainLine, PLAIN_LINE } from '../interface/scalars.ts'
import { defineAccountExchange, defineAccountOperation, Reply, refuseOverflow } from '../operation.ts'
import { draftTest, raisePending, raiseWatchdogAlert } from './alerts.ts'
import {
  endPause,
  findWatchdog,
  findWatchdogs,
  missing,
  removeWatchdog,
  startPause,
  WATCHDOG_STATES,
  type Watchdog,
  watchdogName,
  watchdogRow,
  writeWatchdog,
} from './watchdog.ts'

const MAX_SECONDS = 2_592_000
const MIN_GRACE_SECONDS = 5

const watchdogOutput = watchdogRow.omit({ webhook_id: true, secret_version: true }).strict()
const byName = z.strictObject({ name: watchdogName })
const state = z.enum(WATCHDOG_STATES)

export const putWatchdog = defineAccountOperation({
  name: 'put_watchdog',
  summary: 'Expect a heartbeat every interval_s seconds, and alert a webhook when none comes',
  description:
    'The clock starts at once. A watchdog without a heartbeat for interval_s seconds is late. After another ' +
    'grace_s seconds (by default the larger of 5 and a tenth of interval_s) it is down, and watchdog.missed is ' +
    'sent once. The next heartbeat ends the outage, and watchdog.recovered is sent. alert_after is how many ' +
    'intervals must be missed before the alert. With remind_every_s, watchdog.reminder is sent again and again ' +
    'while it is down. Another PUT changes these terms, but not the clock or a pause. The answer that makes the ' +
    'watchdog has webhook_secret, which is not shown again.',
  method: 'PUT',
  path: '/v1/watchdog/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  statuses: [200, 201],
  errors: ['tier_limit'],
  kind: 'transaction',
  input: z.strictObject({
    name: watchdogName,
    interval_s: z.int().min(10).max(MAX_SECONDS),
    webhook_url: webhookUrl,
    grace_s: z.int().min(0).max(MAX_SECONDS).optional(),
    alert_after: z.int().min(1).max(100).default(1),
    remind_every_s: z.int().min(60).max(MAX_SECONDS).nullable().default(null),
  }),
  output: watchdogOutput.extend({ webhook_secret: z.string().optional() }),
  async run({ name, webhook_url, ...given }, { tx, api, caller }) {
    const { accountId, tier } = caller
    const terms = { ...given, grace_s: given.grace_s ?? Math.max(MIN_GRACE_SECONDS, Math.ceil(given.interval_s / 10)) }
    const { made, watchdog } = await writeWatchdog(
      tx,
      { accountId, name, url: readWebhookUrl(webhook_url, api.config), terms, limit: LIMITS[tier].watchdogs },
      () => tierLimit('watchdogs', tier),
    )
    if (!made) return fresh(describe(watchdog))
    const webhook_secret = webhookSecret(api.secrets.webhook, watchdog.webhook_id, watchdog.secret_version)
    return fresh({ ...describe(watchdog), webhook_secret }, 201)
  },
})

function describe({ webhook_id: _id, secret_version: _version, ...shown }: Watchdog) {
  return shown
}

/** Characters of a heartbeat's note, in code points. */
const MAX_NOTE = 200

const note = z
  .string()
  .refine(isPlainLine, PLAIN_LINE)
  .refine((text) => [...text].length <= MAX_NOTE, `must have at most ${MAX_NOTE} characters`)
  .meta({ maxLength: MAX_NOTE })

export const sendHeartbeat = defineAccountExchange({
  name: 'send_heartbeat',
  summary: 'Report that a job ran, or that it failed',
  description:
    'No body is needed. With `fail` your job says that it ran and failed: the alert is sent at once, and the ' +
    'outage ends with the next `ok`. A paused watchdog counts heartbeats and stays paused. The first 12 outages ' +
    'of a watchdog are alerted at once. After them there is an alert every 5 minutes at most, which reports all ' +
    'outages since the one before.',
  method: 'POST',
  path: '/v1/heartbeat/{name}',
  family: 'control',
  access: 'account',
  scope: 'heartbeat:send',
  budget: 'heartbeats',
  errors: ['not_found', 'capacity_exceeded'],
  kind: 'exchange',
  input: z.strictObject({ name: watchdogName, status: z.enum(['ok', 'fail']).default('ok'), note: note.optional() }),
  output: z.strictObject({ name: watchdogName, state, due_at: z.string().nullable(), server_now: z.string() }),
  async run({ name, status, note = null }, { api, caller }) {
    const answer = await api.heartbeats.add({ accountId: caller.accountId, name, status, note }).catch(refuseOverflow)
    if (!answer) return missing()
    // The heartbeat is recorded, even if the alert cannot be raised now.
    if (answer.alert_due) await raisePending(api, answer.id)
    const { state, due_at, server_now } = answer
    return fresh({ name, state, due_at, server_now })
  },
})

export const getWatchdog = defineAccountOperation({
  name: 'get_watchdog',
  summary: 'One watchdog and its state',
  method: 'GET',
  path: '/v1/watchdog/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:read',
  errors: ['not_found'],
  kind: 'transaction',
  input: byName,
  output: watchdogOutput,
  run: async ({ name }, { tx, caller }) => fresh(describe(await findWatchdog(tx, caller.accountId, name))),
})

export const listWatchdogs = defineAccountOperation({
  name: 'list_watchdogs',
  summary: "The account's watchdogs by name",
  method: 'GET',
  path: '/v1/watchdog',
  family: 'control',
  access: 'account',
  scope: 'watchdog:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ watchdogs: z.array(watchdogOutput) }),
  run: async (_input, { tx, caller }) =>
    fresh({ watchdogs: (await findWatchdogs(tx, caller.accountId)).map(describe) }),
})

export const pauseWatchdog = defineAccountOperation({
  name: 'pause_watchdog',
  summary: 'Pause a watchdog, with or without an end, or resume it',
  description:
    'A paused watchdog sends no alert. When it is resumed, by a call or at `until`, it starts with a new deadline. The end of an ' +
    'outage that was alerted before the pause is alerted with the first heartbeat, but not before the pause ends.',
  method: 'POST',
  path: '/v1/watchdog/{name}/pause',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  errors: ['not_found'],
  kind: 'transaction',
  input: z.strictObject({
    name: watchdogName,
    paused: z.boolean(),
    // Postgres has no year 0.
    until: z.iso
      .datetime()
      .refine((time) => !time.startsWith('0000'), 'must be in the future')
      .nullable()
      .default(null)
      .describe('UTC, ending in Z.'),
  }),
  output: watchdogOutput,
  async run({ name, paused, until }, { tx, caller }) {
    const { accountId } = caller
    if (!paused && until !== null) throw new AppError('invalid_request', 'until: needs paused: true.')
    if (paused) await startPause(tx, accountId, name, until)
    else await endPause(tx, accountId, name)
    return fresh(describe(await findWatchdog(tx, accountId, name)))
  },
})

export const deleteWatchdog = defineAccountOperation({
  name: 'delete_watchdog',
  summary: 'Delete a watchdog and its alerts, sent or not',
  method: 'DELETE',
  path: '/v1/watchdog/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  statuses: [204],
  errors: ['not_found'],
  kind: 'transaction',
  input: byName,
  output: z.null(),
  async run({ name }, { tx, caller }) {
    await removeWatchdog(tx, caller.accountId, name)
    return new Reply(null, { status: 204 })
  },
})

export const {
  list: listAlerts,
  redeliver: redeliverAlert,
  rotate: rotateWebhookSecret,
  test: testWatchdog,
} = defineAlertOperations({
  noun: 'watchdog',
  path: '/v1/watchdog',
  names: {
    list: 'list_alerts',
    redeliver: 'redeliver_alert',
    rotate: 'rotate_webhook_secret',
    test: 'test_watchdog',
  },
  name: watchdogName,
  find: findWatchdog,
  draftTest,
  raise: raiseWatchdogAlert,
})
