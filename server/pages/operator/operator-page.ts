// The operator's dashboard: what needs attention first, then what runs now.
import { networkInWords } from '../../../client/networks.ts'
import { type Html, html } from '../../../client/page/html.ts'
import {
  Badge,
  counted,
  Facts,
  Figures,
  inFigures,
  Notice,
  named,
  ShortTime,
  Table,
} from '../../../client/page/parts.ts'
import type { UndeliveredAlert } from '../../operate/alerts.ts'
import { ALL } from '../../operate/drain.ts'
import type { DeadJob } from '../../operate/jobs.ts'
import type { Status } from '../../operate/status.ts'
import type { Unresolved } from '../../payments/ledger.ts'
import type { Site } from '../layout.ts'
import { renderOperatorPage } from './operator-frame.ts'
import { Week, type WeekProps } from './operator-week.ts'

export interface Dashboard extends WeekProps {
  status: Status
  unresolved: readonly Unresolved[]
  undelivered: readonly UndeliveredAlert[]
  deadJobs: readonly DeadJob[]
}

export function operatorPage(site: Site, formToken: string, shown: Dashboard): string {
  return renderOperatorPage(site, {
    title: 'Operator',
    path: '/operator',
    formToken,
    live: true,
    body: html`<h1>Now</h1>
      <div data-live="now"><${Now} ...${shown} /></div>
      <div data-live="open"><${Open} ...${shown} /></div>
      <div data-live="parts"><${Parts} ...${shown} /></div>
      <div data-live="week"><${Week} ...${shown} /></div>`,
  })
}

/** For example `3 s`, `4 min`, `5 h`, `2 d`. */
function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}

/** What is open below. Jobs that used up their attempts are among the warnings. */
function Calm({ status, unresolved, undelivered }: Dashboard): Html {
  const listed = [
    ['Payments that are not resolved', unresolved.length],
    ['Alerts that did not arrive', undelivered.length],
  ] as const
  const open = listed.filter(([, count]) => count > 0)
  if (open.length > 0)
    return html`<${Notice} title="Not everything is done.">${open.map(([what, count]) => `${what}: ${inFigures(count)}.`).join(' ')}${
      unresolved.length > 0 && html`${' '}<a href="#payments">What to do</a>`
    }<//>`
  return (
    status.warnings.length === 0 && html`<${Notice} tone="good" title="Nothing needs you.">No warning at present.<//>`
  )
}

/** The parts of a sentence between backticks are commands. */
const withCode = (text: string): Html =>
  text.split('`').map((part, n) => (n % 2 === 1 ? html`<code key=${n}>${part}</code>` : part))

function Now(dashboard: Dashboard): Html {
  const { status } = dashboard
  const { at, warnings, requests, queue, workers, processes, last_hour, last_day, alerts } = status
  const web = processes.filter(({ alive, kind }) => alive && kind !== 'worker').length
  const failedShare = ({ settled, failed }: typeof last_hour) =>
    settled + failed === 0 ? 'none ended' : `${inFigures(settled)} charged, ${inFigures(failed)} failed`
  return html`<p class="detail">As of <${ShortTime} ms=${at.getTime()} /> UTC.</p>
    ${warnings.map(({ what, cure }) => html`<${Notice} key=${what} tone="bad" title=${`${what}.`}>Cure: ${withCode(cure)}.<//>`)}
    <${Calm} ...${dashboard} />
    <${Figures} figures=${[
      ['at work', inFigures(requests.working)],
      ['oldest', requests.working === 0 ? '–' : span(requests.oldest_seconds)],
      [`${named(queue.due, 'job')} due`, inFigures(queue.due)],
      ['oldest job', queue.due === 0 ? '–' : span(queue.oldest_seconds)],
      [`${named(queue.running, 'job')} running`, inFigures(queue.running)],
      [named(workers.alive, 'worker'), inFigures(workers.alive)],
      [named(web, 'web process', 'web processes'), inFigures(web)],
      [`${named(alerts.pending, 'alert')} pending`, inFigures(alerts.pending)],
    ]} />
    <${Facts} facts=${[
      ['Last hour', failedShare(last_hour)],
      ['Last day', failedShare(last_day)],
      [
        'At work',
        Object.entries(requests.by_state)
          .map(([state, count]) => `${inFigures(count)} ${state}`)
          .join(', ') || 'nothing',
      ],
    ]} />`
}

const act = (action: string, subject: string) => `/operator/act?${new URLSearchParams({ action, subject })}`
const LISTED = 20

/** The hour is that of the warning `payment_unresolved`. */
const ON_UNRESOLVED =
  'A worker asks about each again until its outcome is proved, and charges nothing twice. There is nothing to do before a warning ' +
  'says that one is open after an hour. Then check that a worker runs, and that the facilitator and the node of the blockchain answer; ' +
  '`npm run cli -- payments list-unresolved` says until when each can be charged, and `npm run cli -- payments reconcile` compares ' +
  'the ledger with the blockchain.'

/** Open problems, payments first. */
function Open({ unresolved, undelivered, deadJobs }: Dashboard): Html {
  return html`<h2 id="payments">Payments that are not resolved</h2>
    ${unresolved.length > 0 && html`<p>${withCode(ON_UNRESOLVED)}</p>`}
    <${Table} caption="Payments that may have been charged and are not certainly settled" unseen empty="There are none."
      columns=${[{ name: 'Request' }, { name: 'State' }, { name: 'Open for', number: true }, { name: 'Network' }, { name: 'Payer' }, { name: 'Transaction' }]}
      rows=${unresolved
        .slice(0, LISTED)
        .map(({ request_id, state, open_seconds, network, payer, transaction }) => [
          html`<a href=${`/operator/requests/${request_id}`}><code>${request_id.slice(0, 13)}</code></a>`,
          state,
          span(open_seconds),
          networkInWords(network),
          html`<code>${payer}</code>`,
          transaction ? html`<code>${transaction}</code>` : 'not known',
        ])} />
    ${unresolved.length > LISTED && html`<p class="detail">And ${unresolved.length - LISTED} more: <code>npm run cli -- payments list-unresolved</code>.</p>`}
    <h2>Alerts that did not arrive</h2>
    <${Table} caption="Alerts that failed at least once, or were given up in the last week" unseen empty="There are none."
      columns=${[{ name: 'Alert' }, { name: 'State' }, { name: 'Account' }, { name: 'Host' }, { name: 'Attempts', number: true }, { name: 'Why' }, { name: '' }]}
      rows=${undelivered.map(({ id, type, state, handle, host, attempts, last_error }) => [
        html`${type} <code>${id.slice(0, 11)}</code>`,
        html`<${Badge} tone=${state === 'failed' ? 'bad' : 'open'}>${state === 'failed' ? 'given up' : 'tried again'}<//>`,
        handle,
        host,
        String(attempts),
        last_error ?? '',
        html`<a href=${act('redeliver_alert', id)}>Send again…</a>`,
      ])} />
    <h2>Jobs that used up their attempts</h2>
    <${Table} caption="Dead jobs, the longest dead first" unseen empty="There are none."
      columns=${[{ name: 'Job' }, { name: 'Task' }, { name: 'Of' }, { name: 'Last error' }, { name: '' }]}
      rows=${deadJobs.map(({ id, task, key, last_error }) => [
        id,
        task,
        html`<code>${key ?? ''}</code>`,
        (last_error ?? '').split('\n')[0]?.slice(0, 160) ?? '',
        html`<a href=${act('redrive_job', id)}>Run again…</a>`,
      ])} />`
}

function Parts({ status }: Dashboard): Html {
  const { processes, assessor, workers, chain, watchdogs, alerts, accounts, money_today } = status
  const listed = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${inFigures(count)} ${name}`)
      .join(', ') || 'none'
  return html`<h2>Parts</h2>
    <div class="columns">
      <${Facts} facts=${[
        [
          'Assessor',
          `${assessor.methods.join(', ') || 'no worker says'}${assessor.paused_seconds > 0 ? `; no work for ${span(assessor.paused_seconds)}` : ''}${assessor.problems.map((one) => `; ${one}`).join('')}`,
        ],
        ['Workers', `${workers.alive} alive${workers.paused > 0 ? `, ${workers.paused} of them take no work` : ''}`],
        [
          'Chain',
          chain.serial === 0
            ? 'no receipt yet'
            : html`<a href=${`/receipts/${chain.serial}`}>receipt ${inFigures(chain.serial)}</a>, ${chain.at && html`<${ShortTime} ms=${chain.at.getTime()} />`}`,
        ],
        [
          'Money today',
          money_today
            .map(
              ({ mode, network, payments, amount_usd }) =>
                `${amount_usd} USDC in ${counted(payments, 'payment')} (${mode}, ${networkInWords(network)})`,
            )
            .join('; ') || 'none',
        ],
      ]} />
      <${Facts} facts=${[
        ['Watchdogs', `${listed(watchdogs.by_state)}; judged ${span(watchdogs.judged_seconds_ago)} ago`],
        [
          'Deliveries',
          `${inFigures(alerts.pending)} pending${alerts.pending > 0 ? `, the oldest for ${span(alerts.oldest_seconds)}` : ''}; ${counted(alerts.failing_webhooks, 'webhook fails', 'webhooks fail')}`,
        ],
        ['Accounts', `${inFigures(accounts.total)}, of them ${inFigures(accounts.disabled)} disabled`],
      ]} />
    </div>
    <${Processes} processes=${processes} />`
}

function Processes({ processes }: Pick<Status, 'processes'>): Html {
  const takers = processes.filter(({ alive, kind }) => alive && kind !== 'web')
  const taking = takers.filter(({ drain }) => drain === null)
  return html`<${Table} caption="Processes of the last ten minutes" columns=${[{ name: 'Process' }, { name: 'Host' }, { name: 'PID', number: true }, { name: 'Started (UTC)' }, { name: 'Last beat' }, { name: 'State' }, { name: '' }]}
      rows=${processes.map((one) => [
        html`${one.kind === 'all' ? 'web and worker' : one.kind} <code>${one.id.slice(0, 8)}</code>`,
        one.host,
        String(one.pid),
        html`<${ShortTime} ms=${one.started_at.getTime()} />`,
        `${span(one.silent_seconds)} ago`,
        html`<${Badge} tone=${one.alive ? (one.drain === null ? 'good' : 'open') : 'bad'}>${one.alive ? (one.drain ?? 'alive') : 'silent'}<//>`,
        one.alive &&
          one.kind !== 'web' &&
          (isDrained(one)
            ? html`<a href=${act('resume_process', one.id)}>Take jobs again…</a>`
            : html`<a href=${act('drain_process', one.id)}>Drain…</a>`),
      ])} />
    ${
      takers.length > 1 &&
      html`<p class="actions">${taking.length > 0 && html`<a class="button quiet" href=${act('drain_process', ALL)}>Drain all…</a>`}
        ${taking.length < takers.length && html`<a class="button quiet" href=${act('resume_process', ALL)}>Let all take jobs again…</a>`}</p>`
    }`
}

/** Whether an operator has asked it to take no jobs. */
const isDrained = ({ drain }: Status['processes'][number]) => drain === 'draining' || drain === 'drained'
