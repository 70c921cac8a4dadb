// The watchdogs of the account as a board.
import type { HeartbeatArrival, Watchdog, WatchdogState } from '../../operations/watchdog.ts'
import { type Html, html } from '../html.ts'
import { Badge, Field, Figures, inFigures, type Tone } from '../parts.ts'
import { Strip, type StripState, type StripTone } from '../strip.ts'
import { Alerts } from './account-alerts.ts'
import { Act, Entry, type SectionProps, Show, span, useLoaded } from './account-parts.ts'
import { Room } from './account-plans.ts'
import { WebhookTrouble } from './account-webhooks.ts'
import { stateInWords } from './watchdog-words.ts'

const EVERY_SECONDS = 10

export function WatchdogsSection({ client, onSecret, ...account }: SectionProps): Html {
  const loaded = useLoaded(() => client.listWatchdogs(), [client], EVERY_SECONDS)
  const showSecret = (name: string, text: string | undefined) =>
    text &&
    onSecret({
      what: `the webhook secret of ${name}`,
      about: 'Your webhook tells by it that an alert is from this service. A lost one can be replaced by a new one.',
      text,
      file: `countersign-${name}.secret`,
    })
  const make = async ({ name = '', interval_s = '', webhook_url = '' }) => {
    const made = await client.putWatchdog({ name, interval_s: Number(interval_s), webhook_url })
    showSecret(name, made.webhook_secret)
  }
  const replaced = ({ name = '' }) =>
    loaded.value?.watchdogs.some((one) => one.name === name)
      ? `${name} is there already. Its interval and its webhook are replaced.`
      : null
  return html`<p>A watchdog waits for a call that your job makes each time it has run: its heartbeat. When the call stays away, the watchdog calls your webhook,
      an address of yours that takes alerts. <a href="/guide/control-toolkit#watchdogs">How to use one</a></p>
    <${Room} ...${account} limit="watchdogs" used=${loaded.value?.watchdogs.length} />
    <${Entry} title="Make or change a watchdog" button="Save it" onDone=${loaded.reload} submit=${make} question=${replaced}>
      <${Field} id="name" label="Name" required hint="Letters, digits, dots, hyphens and underscores" />
      <${Field} id="interval_s" label="Seconds between two heartbeats" type="number" value="60" required hint="3600 for a job that runs each hour, 86400 for one that runs each day" />
      <${Field} id="webhook_url" label="Webhook" type="url" required hint="A public https address, or the incoming webhook of Slack, Discord or Google Chat" /><//>
    <${Show} loaded=${loaded}>${({ watchdogs }: { watchdogs: Watchdog[] }) =>
      watchdogs.length === 0
        ? html`<p class="empty">Your watchdogs will be here, with their last heartbeats. Make one above, then let your job call
            ${' '}<code>POST /v1/heartbeat/NAME</code> each time it has run.</p>`
        : html`<${Figures} figures=${(['up', 'late', 'down', 'new', 'paused'] as const).map((state) => [
            state,
            inFigures(watchdogs.filter((one) => one.state === state).length),
          ])} />
            <ul class="board">${[...watchdogs]
              .sort((a, b) => RANK[a.state] - RANK[b.state] || a.name.localeCompare(b.name))
              .map(
                (one) =>
                  html`<${WatchdogCard} key=${one.name} watchdog=${one} client=${client} onDone=${loaded.reload} showSecret=${showSecret} />`,
              )}</ul>`}<//>`
}

const RANK: Record<WatchdogState, number> = { down: 0, late: 1, new: 2, up: 3, paused: 4 }
const TONES: Record<WatchdogState, Tone> = { down: 'bad', late: 'open', new: 'plain', up: 'good', paused: 'plain' }

const BEATS = 20
const ARRIVED: Record<HeartbeatArrival, readonly [state: string, tone: StripTone]> = {
  in_time: ['in time', 'good'],
  late: ['late', 'open'],
  missed: ['after the time of the alert', 'bad'],
  failed: ['said that the job failed', 'bad'],
}

/** The last heartbeats side by side, the latest at the right. */
function Beats({ watchdog: { name, recent_beats } }: { watchdog: Watchdog }): Html {
  if (recent_beats.length === 0) return null
  const states = recent_beats.map((arrival, n): StripState => {
    const [state, tone] = ARRIVED[arrival]
    const before = recent_beats.length - 1 - n
    return { name: before === 0 ? 'the last' : `${inFigures(before)} before it`, tone, state }
  })
  const counts = Object.entries(ARRIVED).flatMap(([arrival, [state]]) => {
    const count = recent_beats.filter((one) => one === arrival).length
    return count > 0 ? [`${inFigures(count)} ${state}`] : []
  })
  return html`<${Strip} id=${`beats-${name}`} title="Last heartbeats" description=${`Of the last ${recent_beats.length}: ${counts.join(', ')}.`}
    states=${states} places=${BEATS} from="older" to="latest" />`
}

interface CardProps extends Pick<SectionProps, 'client'> {
  watchdog: Watchdog
  onDone(): void
  showSecret(name: string, secret: string): void
}

function WatchdogCard({ watchdog, client, onDone, showSecret }: CardProps): Html {
  const { name, state, interval_s, grace_s, alert_after, remind_every_s, beats, note, webhook_state, webhook_url } =
    watchdog
  const facts = [stateInWords(watchdog), `One is expected every ${span(interval_s)}.`, note && `Note: ${note}`]
  const rotate = async () => showSecret(name, (await client.rotateWebhookSecret({ name })).webhook_secret)
  return html`<li class="card">
    <h3><bdi>${name}</bdi> <${Badge} tone=${TONES[state]}>${state}<//>
      ${webhook_state !== 'active' && html` <${Badge} tone="bad">webhook ${webhook_state}<//>`}</h3>
    <p>${facts.filter(Boolean).join(' ')}</p>
    <${WebhookTrouble} name=${name} url=${webhook_url} state=${webhook_state} list=${() => client.listAlerts({ name })} onDone=${onDone}
      change=${(webhook_url: string) => client.putWatchdog({ name, interval_s, grace_s, alert_after, remind_every_s, webhook_url })}
      test=${() => client.testWatchdog({ name })} />
    ${beats === 0 && html`<p>Next, let your job call <code>POST /v1/heartbeat/${name}</code> each time it has run.</p>`}
    <${Beats} watchdog=${watchdog} />
    <p class="detail"><bdi>${webhook_url}</bdi></p>
    <p class="actions">
      ${
        state === 'paused'
          ? html`<${Act} label="Resume" to=${name} run=${() => client.pauseWatchdog({ name, paused: false })} onDone=${onDone} />`
          : html`<${Act} label="Pause" to=${name} run=${() => client.pauseWatchdog({ name, paused: true })} onDone=${onDone} />`
      }
      <${Act} label="Send a test alert" to=${name} run=${() => client.testWatchdog({ name })} onDone=${onDone} />
      <${Act} label="New secret" to=${name} question="Alerts are signed with the old secret too for 24 hours, and then no more." run=${rotate} />
      <${Act} label="Delete" to=${name} question="The watchdog and the history of its alerts are deleted." run=${() => client.deleteWatchdog({ name })} onDone=${onDone} />
    </p>
    <${Alerts} name=${name} list=${(page: { before?: number }) => client.listAlerts({ name, ...page })}
      redeliver=${(id: string) => client.redeliverAlert({ name, id })} />
  </li>`
}
