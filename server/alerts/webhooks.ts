// Where alerts go. A webhook belongs to one watchdog or one citation watch and dies with it.
import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { nothing, sql, type Tx } from '../db/pool.ts'

/** @param url one that the gate for sources let through. Answers the webhook's id. */
export async function insertWebhook(tx: Tx, accountId: string, url: string): Promise<string> {
  const id = randomUUID()
  await tx.query(sql.type(nothing)`insert into webhooks (id, account_id, url) values (${id}, ${accountId}, ${url})`)
  return id
}

/** Another address, or the same one again: either way it is to be tried anew. */
export async function updateWebhookUrl(tx: Tx, id: string, url: string): Promise<void> {
  await tx.query(sql.type(nothing)`update webhooks set url = ${url}, state = 'active' where id = ${id}`)
}

/** With its alerts, sent or not. */
export async function deleteWebhook(tx: Tx, id: string): Promise<void> {
  await tx.query(sql.type(nothing)`delete from webhooks where id = ${id}`)
}

/** The `whsec_` that a receiver checks `v1` with. @param root of `Core.secrets.webhook` */
export function webhookSecret(root: KeyObject, id: string, version: number): string {
  return `whsec_${createHmac('sha256', root).update(`${id} ${version}`).digest('base64')}`
}
