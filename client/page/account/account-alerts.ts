// The alerts of a watchdog or a citation watch: body, attempts, and one more try.
import { useState } from 'preact/hooks'
import type { AlertHistory, AlertRecord } from '../../operations/webhook.ts'
import { type Html, html } from '../html.ts'
import { Badge, Code, inFigures, ShortTime, Table, type Tone } from '../parts.ts'
import { Act, Show, useLoaded } from './account-parts.ts'

export interface AlertsProps {
  name: string
  list(page: { before?: number }): Promise<AlertHistory>
  redeliver(id: string): Promise<unknown>
}

/** Folded; the alerts are asked for when it is opened. */
export function Alerts(props: AlertsProps): Html {
  const [isOpen, setOpen] = useState(false)
  return html`<details onToggle=${({ currentTarget }: { currentTarget: HTMLDetailsElement }) => setOpen(currentTarget.open)}>
    <summary>Alerts of ${props.name}</summary>
    ${isOpen && html`<${AlertList} ...${props} />`}
  </details>`
}

function AlertList({ name, list, redeliver }: AlertsProps): Html {
  const [before, setBefore] = useState<number | undefined>()
  const loaded = useLoaded(() => list(before === undefined ? {} : { before }), [name, before])
  return html`<${Show} loaded=${loaded}>${({ alerts, next }: AlertHistory) =>
    html`${alerts.length === 0 && html`<p class="empty">Each alert will be here, with every attempt to deliver it.</p>`}
      ${alerts.map((alert) => html`<${AlertView} key=${alert.id} alert=${alert} redeliver=${redeliver} onDone=${loaded.reload} />`)}
      <p class="actions">${before !== undefined && html`<button type="button" class="quiet" onClick=${() => setBefore(undefined)}>Newest</button>`}
        ${next !== null && html`<button type="button" class="quiet" onClick=${() => setBefore(next)}>Older</button>`}</p>`}<//>`
}

const TONES: Record<AlertRecord['state'], Tone> = {
  pending: 'open',
  delivered: 'good',
  failed: 'bad',
  discarded: 'plain',
}
const STATES: Record<AlertRecord['state'], string> = {
  pending: 'not delivered yet',
  delivered: 'delivered',
  failed: 'given up',
  discarded: 'discarded',
}

/** What happened to an alert, and what happens next. */
export function Delivery({ alert: { state, settled_at, next_attempt_at, attempts } }: { alert: AlertRecord }): Html {
  const next = next_attempt_at && html`<${ShortTime} ms=${Date.parse(next_attempt_at)} /> UTC`
  const count = attempts.length === 1 ? '1 attempt' : `${inFigures(attempts.length)} attempts`
  switch (state) {
    case 'pending':
      if (attempts.length === 0 && next) return 'It is being sent.'
      if (!next) return 'It is sent after the alert before it, which is not delivered yet.'
      return html`Your webhook did not accept it in ${count} so far. The next attempt is at ${next}.`
    case 'delivered':
      return html`Your webhook accepted it${settled_at && html` at <${ShortTime} ms=${Date.parse(settled_at)} /> UTC`}.
        ${next && html` It is sent once more, as you asked.`}`
    case 'failed':
      return `Your webhook did not accept it in ${count}. ${next ? 'It is sent once more, as you asked.' : 'There is no further attempt, unless you send it again.'}`
    case 'discarded':
      return `It was not delivered, because your webhook had asked for no more alerts. ${next ? 'It is sent once more, as you asked.' : 'To get alerts again, set the webhook again.'}`
  }
}

interface AlertProps extends Pick<AlertsProps, 'redeliver'> {
  alert: AlertRecord
  onDone(): void
}

function AlertView({ alert, redeliver, onDone }: AlertProps): Html {
  const { id, type, state, created_at, serial, body, attempts } = alert
  return html`<div class="alert-record">
    <p><strong>${type}</strong> <${Badge} tone=${TONES[state]}>${STATES[state]}<//></p>
    <p>Made at <${ShortTime} ms=${Date.parse(created_at)} /> UTC, with <a href=${`/receipts/${serial}`}>receipt ${serial}</a>. <${Delivery} alert=${alert} /></p>
    <${Table} caption=${`Attempts to deliver ${type}`} unseen empty="It was not tried yet."
      columns=${[{ name: 'Attempt' }, { name: 'Time (UTC)' }, { name: 'Status' }, { name: 'ms', number: true }, { name: 'Why it failed' }]}
      rows=${attempts.map(({ attempt, at, status, ms, error }) => [String(attempt), html`<${ShortTime} ms=${Date.parse(at)} />`, status ?? '–', String(ms), error ?? ''])} />
    <details><summary>What is sent</summary><${Code} label=${`Body of ${id}`} text=${pretty(body)} /></details>
    <p class="actions"><${Act} label="Send again" to=${type} run=${() => redeliver(id)} onDone=${onDone} /></p>
  </div>`
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
