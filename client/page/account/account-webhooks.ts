// What is wrong with the webhook of a watchdog or a citation watch, and the field that mends and tests it.
import type { AlertHistory, AlertRecord, WebhookState } from '../../operations/webhook.ts'
import { type Html, html } from '../html.ts'
import { Field, Notice, ShortTime } from '../parts.ts'
import { Entry, useLoaded } from './account-parts.ts'

export interface WebhookProps {
  /** Of the watchdog or the watch. */
  name: string
  url: string
  state: WebhookState
  list(): Promise<AlertHistory>
  /** Sets the address, which may be unchanged: the webhook gets alerts again. */
  change(url: string): Promise<unknown>
  test(): Promise<unknown>
  onDone(): void
}

/** Nothing for a webhook that takes alerts. */
export function WebhookTrouble({ state, ...trouble }: WebhookProps): Html {
  return state === 'active' ? null : html`<${Mend} state=${state} ...${trouble} />`
}

function Mend({ name, url, state, list, change, test, onDone }: WebhookProps): Html {
  const loaded = useLoaded(list, [name, url, state])
  const submit = async ({ webhook_url = '' }) => {
    await change(webhook_url)
    await test()
  }
  return html`<${Notice} tone="bad" title="Alerts do not arrive."><${Trouble} state=${state} alerts=${loaded.value?.alerts ?? []} /><//>
    <${Entry} title="Mend the webhook" isOpen button="Save it and send a test alert" submit=${submit} onDone=${onDone}>
      <${Field} id=${`webhook-of-${name}`} name="webhook_url" label=${`Webhook of ${name}`} type="url" value=${url} required
        hint="Mend the program at this address, or name another one. Saved, it gets alerts again." /><//>`
}

/** What the webhook did with the last alert that it did not take. @param alerts the newest first */
export function Trouble({ state, alerts }: { state: WebhookState; alerts: readonly AlertRecord[] }): Html {
  // Only a failed alert was given up: attempts of a pending one go on.
  const last = alerts
    .filter((alert) => state === 'disabled' || alert.state === 'failed')
    .flatMap(({ attempts }) => attempts.slice(-1))
    .sort((a, b) => b.at.localeCompare(a.at))[0]
  const at = last && html`at <${ShortTime} ms=${Date.parse(last.at)} /> UTC`
  if (state === 'disabled')
    return html`The webhook asked for no more alerts${last && html`: it answered ${last.status} ${at}`}. None is sent before it is saved again.`
  if (!last) return 'The webhook did not accept an alert, which was then given up.'
  return last.status === null
    ? html`The webhook could not be reached ${at}${last.error && ` (${last.error})`}, and an alert was given up.`
    : html`The webhook answered ${last.status} ${at}, and an alert was given up. An answer from 200 to 299 accepts one.`
}
