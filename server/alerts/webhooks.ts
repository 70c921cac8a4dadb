// The record of webhooks: where alerts are sent, and with which secrets. A webhook belongs to one watchdog or one citation
// watch and is deleted with it.
import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { utcSeconds } from '../db/time.ts'
import { AppError } from '../errors.ts'
import { uri } from '../interface/scalars.ts'
import { registrableDomain } from '../outbound/registrable-domain.ts'
import { hostOf, parsePublicUrl } from '../outbound/url-policy.ts'
import { laneOf } from './lanes.ts'
import { wakeDelivery } from './outbox.ts'

export const WEBHOOK_STATES = ['active', 'failing', 'disabled'] as const

/** The URL of a webhook as operations take it. `readWebhookUrl` refuses more than the pattern can say, and says why. */
export const webhookUrl = uri(z.string().max(2048))
  .meta({ pattern: '^https://[^\\s]+$' })
  .describe(
    'A public https address on port 443. A webhook of Slack, Discord or Google Chat gets a message that it can show.',
  )

/**
 * Reads the URL of a webhook by the URL policy. The addresses of its host are checked at every delivery. Throws AppError
 * `invalid_request` for every refusal: to the caller it is an invalid member of the body.
 */
export function readWebhookUrl(
  url: string,
  { fixtures, paymentMode }: Pick<Config, 'fixtures' | 'paymentMode'>,
): string {
  try {
    return parsePublicUrl(url, fixtures).href
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const hint = paymentMode === 'offline' ? ` ${OWN_RECEIVER}` : ''
    throw new AppError('invalid_request', `webhook_url: ${error.message}${hint}`, { cause: error })
  }
}

const OWN_RECEIVER =
  'To try a receiver on this machine, give it a name: start the service with FIXTURE_HOSTS="hook.test=127.0.0.1:PORT" and ' +
  'FIXTURE_CA_FILE, let it answer https there, and use https://hook.test/.'

/** Answers the webhook's id. @param url from `readWebhookUrl` */
export async function insertWebhook(tx: Tx, accountId: string, url: string): Promise<string> {
  const id = randomUUID()
  await tx.query(sql.type(nothing)`
    insert into webhooks (id, account_id, url, domain) values (${id}, ${accountId}, ${url}, ${domainOf(url)})`)
  return id
}

function domainOf(url: string): string {
  return registrableDomain(hostOf(new URL(url)))
}

/**
 * Sets the URL, which may be unchanged, enables the webhook, and makes waiting alerts due. `tried` and `slow` describe the
 * host and are kept while it stays the same. An attempt under way at another URL loses its lease, so its outcome is not
 * recorded; then a webhook that stays at the host counts as slow, or a receiver that hangs could avoid that by a PUT.
 */
export async function updateWebhookUrl(tx: Tx, id: string, url: string): Promise<void> {
  const { host } = new URL(url)
  await tx.query(sql.type(nothing)`
    update webhooks set url = ${url}, domain = ${domainOf(url)}, state = 'active',
      tried = (tried or sender is not null) and host = ${host},
      slow = (slow or (sender is not null and url <> ${url})) and host = ${host},
      sender = case when url = ${url} then sender end, sending_until = case when url = ${url} then sending_until end
    where id = ${id}`)
  await tx.query(sql.type(nothing)`
    update alerts set next_attempt_at = now(), lane = ${laneOf} from webhooks w
    where w.id = ${id} and webhook_id = ${id} and alerts.state = 'pending' and next_attempt_at is not null`)
  await wakeDelivery(tx, [id])
}

/** Deletes its alerts too, sent or not. */
export async function deleteWebhook(tx: Tx, id: string): Promise<void> {
  await tx.query(sql.type(nothing)`delete from webhooks where id = ${id}`)
}

/** The `whsec_` secret with which a receiver checks `v1`. @param root `Core.secrets.webhook` */
export function webhookSecret(root: KeyObject, id: string, version: number): string {
  return `whsec_${createHmac('sha256', root).update(`${id} ${version}`).digest('base64')}`
}

/** Hours for which older secrets sign too after a rotation. */
export const OVERLAP_HOURS = 24
/** More than one, so that a caller who repeats a rotation after a lost answer does not end the secret of the receiver. */
const MAX_OLD_SECRETS = 3

const rotation = z.object({ secret_version: z.number(), old_secrets_until: z.string() })

/** Makes a new secret. Up to MAX_OLD_SECRETS older ones sign too for OVERLAP_HOURS. */
export async function rotateSecret(tx: Tx, id: string): Promise<z.output<typeof rotation>> {
  return tx.one(sql.type(rotation)`
    update webhooks set secret_version = secret_version + 1,
      old_secrets = case when old_secrets_until > now() then least(old_secrets + 1, ${MAX_OLD_SECRETS}) else 1 end,
      old_secrets_until = now() + ${OVERLAP_HOURS} * interval '1 hour'
    where id = ${id}
    returning secret_version, ${utcSeconds(sql.fragment`old_secrets_until`)} old_secrets_until`)
}
