// The pages of requests on the operator's dashboard: the list with its search, one request as a timeline, the question before an
// action, and the log of actions.

import { z } from 'zod'
import { networkInWords } from '../../../client/networks.ts'
import { type Html, html } from '../../../client/page/html.ts'
import { Badge, Code, Facts, inFigures, Notice, ShortTime, Table, type Tone } from '../../../client/page/parts.ts'
import type { Action, RecordedAction } from '../../operate/actions.ts'
import type { RequestPage } from '../../operate/request-pages.ts'
import { isChargeable, type RequestDetail } from '../../operate/requests.ts'
import type { Moment } from '../../operate/timeline.ts'
import { isWorking, type State, states } from '../../verification/request.ts'
import type { Site } from '../layout.ts'
import { FormToken, renderOperatorPage } from './operator-frame.ts'

const TONES: Partial<Record<State, Tone>> = { completed: 'good', failed: 'bad', unpaid: 'open', settling: 'open' }

function StateBadge({ state }: { state: State }): Html {
  return html`<${Badge} tone=${TONES[state] ?? 'plain'}>${state}<//>`
}

export interface ListShown {
  text: string
  state: State | null
  page: RequestPage
  isFirst: boolean
}

export function operatorRequestsPage(site: Site, formToken: string, { text, state, page, isFirst }: ListShown): string {
  const query = (members: Record<string, string>) =>
    `/operator/requests?${new URLSearchParams({ ...(text && { q: text }), ...(state && { state }), ...members })}`
  return renderOperatorPage(site, {
    title: 'Requests',
    path: '/operator/requests',
    formToken,
    body: html`<h1>Requests</h1>
      <form class="filter" action="/operator/requests" method="get" role="search">
        <div class="field"><label for="q">Id or its beginning, payer, transaction, or host</label>
          <input class="mono" id="q" name="q" type="search" value=${text} spellcheck=${false} autocomplete="off" /></div>
        <p><label for="state">State</label><select id="state" name="state"><option value="">any</option>${states.map(
          (one) => html`<option key=${one} value=${one} selected=${one === state}>${one}</option>`,
        )}</select></p>
        <p><button type="submit">Find</button></p>
      </form>
      <${Table} caption="Requests, newest first" unseen empty="No request matches."
        columns=${[{ name: 'Request' }, { name: 'State' }, { name: 'Host' }, { name: 'Why' }, { name: 'Made (UTC)' }, { name: 'Changed (UTC)' }]}
        rows=${page.requests.map(({ id, state, host, code, created_at, changed_at }) => [
          html`<a href=${`/operator/requests/${id}`}><code>${id.slice(0, 13)}</code></a>`,
          html`<${StateBadge} state=${state} />`,
          host ?? '',
          code ?? '',
          html`<${ShortTime} ms=${created_at.getTime()} />`,
          html`<${ShortTime} ms=${changed_at.getTime()} />`,
        ])} />
      <p class="actions">${!isFirst && html`<a class="button quiet" href=${query({})}>Newest</a>`}
        ${page.next && html`<a class="button quiet" href=${query({ after: `${page.next.created_at} ${page.next.id}` })}>Older</a>`}</p>`,
  })
}

export interface RequestShown {
  request: RequestDetail
  timeline: readonly Moment[]
}

/** As much of a stored body and error as the page shows; nothing where another release stored another form. */
const storedBody = z.object({ source_url: z.string(), claim: z.string() }).partial().catch({})
const storedError = z.object({ code: z.string(), message: z.string() }).partial().catch({})

export function operatorRequestPage(site: Site, formToken: string, { request, timeline }: RequestShown): string {
  const { id, state, body, error, waiting, job, job_row, payments, receipt_serial, quote_expires_at } = request
  const { source_url = null, claim = null } = storedBody.parse(body)
  const { code = null, message = null } = storedError.parse(error)
  return renderOperatorPage(site, {
    title: `Request ${id.slice(0, 8)}`,
    path: `/operator/requests/${id}`,
    formToken,
    live: true,
    body: html`<h1>Request <code>${id}</code></h1>
      <div data-live="request">
        <p><${StateBadge} state=${state} /></p>
        <${Facts} facts=${[
          ['Source', source_url && html`<bdi>${source_url}</bdi>`],
          ['Claim', claim],
          ['Failed with', code && html`<code>${code}</code>: ${message}`],
          ['Waits', waiting ? html`<code>${JSON.stringify(waiting)}</code>` : null],
          ['Quote ends', state === 'quoted' ? html`<${ShortTime} ms=${quote_expires_at.getTime()} />` : null],
          [
            'Receipt',
            receipt_serial && html`<a href=${`/receipts/${receipt_serial}`}>${inFigures(receipt_serial)}</a>`,
          ],
          ['Job', jobInWords(job, job_row)],
        ]} />
        <${Timeline} moments=${timeline} />
        ${job_row?.last_error && html`<${Code} label="Last error of its job" text=${job_row.last_error.slice(0, 4000)} />`}
        <h2>Payments</h2>
        <${Table} caption="Entries of the ledger" unseen empty="The ledger has no entry of it."
          columns=${[{ name: 'Time (UTC)' }, { name: 'Outcome' }, { name: 'USDC', number: true }, { name: 'Network' }, { name: 'Payer' }, { name: 'Transaction' }, { name: 'Proof' }]}
          rows=${payments.map(({ entered_at, outcome, reason, amount_atomic, network, payer, transaction, proof }) => [
            html`<${ShortTime} ms=${entered_at.getTime()} />`,
            html`<${Badge} tone=${outcome === 'settled' ? 'good' : 'open'}>${outcome}<//> ${reason ?? ''}`,
            (Number(amount_atomic) / 1e6).toFixed(2),
            network && networkInWords(network),
            html`<code>${payer}</code>`,
            html`<code>${transaction ?? ''}</code>`,
            proof ?? '',
          ])} />
      </div>
      ${
        isWorking(state)
          ? html`<h2>Actions</h2>
            ${isChargeable(state) && html`<p>${IMPOSSIBLE.charged}</p>`}
            <p class="actions"><a class="button quiet" href=${`/operator/act?${new URLSearchParams({ action: 'retry_request', subject: id })}`}>Give it a new job…</a>${
              !isChargeable(state) &&
              html`<a class="button quiet" href=${`/operator/act?${new URLSearchParams({ action: 'cancel_request', subject: id })}`}>Cancel it…</a>`
            }</p>`
          : html`<p class="aside">${IMPOSSIBLE.idle}</p>`
      }`,
  })
}

function jobInWords(job: string, row: RequestDetail['job_row']): Html {
  if (!row) return job
  const { attempts, max_attempts, run_at, locked_by } = row
  return html`${job}, ${attempts} of ${max_attempts} attempts${locked_by ? `, held by ${locked_by}` : html`, runs <${ShortTime} ms=${run_at.getTime()} />`}`
}

/** Why an action on a request would change nothing. */
const IMPOSSIBLE = {
  idle: 'It is not at work, so there is nothing to repeat or cancel.',
  charged: 'Its payment may be charged already, so it cannot be cancelled.',
}

/** The heading where an action on a request would change nothing. */
const REFUSED: Partial<Record<Action, string>> = {
  cancel_request: 'This request cannot be cancelled',
  retry_request: 'This request needs no new job',
}

/** Why an action would change nothing; null where it may. @param state of the request that it is about; null for other subjects */
function impossible(action: Action, state: State | null): string | null {
  if (state === null) return null
  if (!isWorking(state)) return IMPOSSIBLE.idle
  return action === 'cancel_request' && isChargeable(state) ? IMPOSSIBLE.charged : null
}

/** Each state that the request entered, with a bar whose length is the time it took. */
function Timeline({ moments }: { moments: readonly Moment[] }): Html {
  const longest = Math.max(...moments.map(({ seconds }) => seconds ?? 0), 0.001)
  return html`<h2>Timeline</h2>
    <${Table} caption="The states that it entered, oldest first" unseen
      columns=${[{ name: 'State' }, { name: 'Time (UTC)' }, { name: 'After', number: true }, { name: '' }, { name: 'Process' }]}
      rows=${moments.map(({ state, at, seconds, by }) => [
        html`<${StateBadge} state=${state} />`,
        html`<time datetime=${at.toISOString()}>${at.toISOString().slice(0, 23).replace('T', ' ')}</time>`,
        seconds === null ? '' : `${seconds.toFixed(3)} s`,
        html`<svg class="meter" width="100%" height="8" aria-hidden="true"><rect class="used" width=${`${(((seconds ?? 0) / longest) * 100).toFixed(1)}%`} height="8" /></svg>`,
        by ? html`<code>${by}</code>` : '',
      ])} />`
}

/** The question before each action, with a description of what the action does. */
const QUESTIONS: Readonly<
  Record<Exclude<Action, 'sign_in' | 'sign_out'>, { title: string; does: string; button: string }>
> = {
  retry_request: {
    title: 'Give this request a new job?',
    does: 'It runs at once, from the stage that it has reached. Finished stages are not repeated.',
    button: 'Give it a new job',
  },
  cancel_request: {
    title: 'Cancel this request?',
    does: 'It fails as cancelled, and its payment is released for another purchase. This cannot be taken back. A request whose payment may be charged is not changed.',
    button: 'Cancel it',
  },
  redeliver_alert: {
    title: 'Send this alert once more?',
    does: 'Its receiver gets it again, with the same id.',
    button: 'Send it',
  },
  redrive_job: { title: 'Let this job run again?', does: 'It gets all its attempts again.', button: 'Run it' },
  drain_process: {
    title: 'Drain this process?',
    does: 'It takes no new jobs. It finishes those it has, or hands them back within half a minute, and keeps running. “Take jobs again” undoes this, and so does a restart. While no process takes jobs, nothing is sold, no alert is delivered, and no deadline of a watchdog is checked.',
    button: 'Drain it',
  },
  resume_process: {
    title: 'Let this process take jobs again?',
    does: 'It begins within some seconds.',
    button: 'Take jobs again',
  },
  disable_account: {
    title: 'Disable this account?',
    does: 'Its API keys are refused within two seconds. It cannot renew its leases, and its watchdogs raise alerts when heartbeats are missing. Nothing is deleted.',
    button: 'Disable it',
  },
  enable_account: { title: 'Enable this account?', does: 'Its API keys are accepted again.', button: 'Enable it' },
}

export interface Question {
  action: keyof typeof QUESTIONS
  subject: string
}

/** @param state of the request that the action is about; null for other subjects */
export function questionPage(site: Site, formToken: string, question: Question, state: State | null): string {
  const { action, subject } = question
  const { title: asked, does, button } = QUESTIONS[action]
  const refusal = impossible(action, state)
  const title = (refusal && REFUSED[action]) ?? asked
  return renderOperatorPage(site, {
    title,
    path: '/operator/act',
    formToken,
    body: html`<h1>${title}</h1>
      <p>${state !== null && html`<${StateBadge} state=${state} />`} <code>${subject}</code></p>
      ${
        refusal
          ? html`<p>${refusal}</p><p class="actions"><a class="button" href=${backTo(question)}>Back to the request</a></p>`
          : html`<p>${does} This action is recorded in the log of actions.</p>
      <form method="post" action="/operator/act">
        <${FormToken} value=${formToken} /><input type="hidden" name="action" value=${action} /><input type="hidden" name="subject" value=${subject} />
        <p class="actions"><button type="submit" class="danger">${button}</button> <a class="button quiet" href=${backTo(question)}>Leave it</a></p>
      </form>`
      }`,
  })
}

/** The page on which the action was started. */
function backTo({ action, subject }: Question): string {
  if (action === 'retry_request' || action === 'cancel_request')
    return `/operator/requests/${encodeURIComponent(subject)}`
  return action === 'disable_account' || action === 'enable_account' ? '/operator/actions' : '/operator'
}

export interface ActionsShown {
  /** Attempts to sign in that were refused lately. */
  refusals: { refused: number; last_at: Date | null }
  actions: readonly RecordedAction[]
  /** The number after which the next page begins; null at the end. */
  next: number | null
  /** The action that was done just now. */
  done: { action: string; outcome: string } | null
}

export function operatorActionsPage(
  site: Site,
  formToken: string,
  { actions, refusals, next, done }: ActionsShown,
): string {
  return renderOperatorPage(site, {
    title: 'Actions',
    path: '/operator/actions',
    formToken,
    body: html`<h1>Actions</h1>
      ${done && html`<${Notice} tone=${BAD.has(done.outcome) ? 'plain' : 'good'} title=${`${done.action.replaceAll('_', ' ')}:`}>${done.outcome.replaceAll('_', ' ')}.<//>`}
      <p>All actions on this dashboard. Nothing can be deleted from this list.</p>
      ${refusals.last_at && html`<p>Attempts to sign in with a wrong token in the last seven days: ${refusals.refused}, the latest at <${ShortTime} ms=${refusals.last_at.getTime()} /> (UTC).</p>`}
      <${Table} caption="Actions, newest first" unseen empty="Nothing was done yet."
        columns=${[{ name: 'Number' }, { name: 'Time (UTC)' }, { name: 'Action' }, { name: 'To' }, { name: 'Outcome' }, { name: 'Session' }]}
        rows=${actions.map(({ action_id, at, action, subject, outcome, session }) => [
          String(action_id),
          html`<${ShortTime} ms=${at.getTime()} />`,
          action.replaceAll('_', ' '),
          subject === '' ? '' : html`<code>${subject}</code>`,
          outcome?.replaceAll('_', ' ') ?? 'not known: the process ended meanwhile',
          html`<code>${session}</code>`,
        ])} />
      <p class="actions">${next !== null && html`<a class="button quiet" href=${`/operator/actions?before=${next}`}>Older</a>`}</p>
      <h2>Accounts</h2>
      <form class="filter" method="get" action="/operator/act">
        <div class="field"><label for="subject">Handle of an account</label><input id="subject" name="subject" required autocomplete="off" spellcheck=${false} /></div>
        <p><label for="action">Action</label><select id="action" name="action"><option value="disable_account">disable</option><option value="enable_account">enable</option></select></p>
        <p><button type="submit" class="quiet">Go on</button></p>
      </form>`,
  })
}

/** Outcomes that changed nothing. */
const BAD: ReadonlySet<string> = new Set(['failed', 'not_found', 'running', 'not_working', 'chargeable', 'refused'])
