// The page /status: what works now, from the same probes as /readyz, and the last 90 days from the roll-ups.
import { type Html, html } from '../../client/page/html.ts'
import {
  Badge,
  counted,
  Figures,
  inFigures,
  Notice,
  type NoticeTone,
  named,
  ShortTime,
  Table,
  type Tone,
} from '../../client/page/parts.ts'
import { Strip, type StripState, type StripTone } from '../../client/page/strip.ts'
import type { Check } from '../operate/readiness.ts'
import type { Day } from '../operate/roll-ups.ts'
import { renderPage, type Site } from './layout.ts'

export interface Status {
  /** When it was read, in milliseconds since the epoch. */
  at: number
  /** The checks of `/readyz`, by name, and `storage`: whether the database can store anything. */
  checks: Readonly<Record<string, Check>>
  /** Why nothing can be bought at present; null if it can. */
  refusal: string | null
  /** Null while the database does not answer. */
  work: { workers: boolean; due: number; oldest_seconds: number } | null
  /** At most DAYS, the oldest first, without those before the first record. Null while the database does not answer. */
  days: readonly Day[] | null
}

export const DAYS = 90

type Line = readonly [name: string, tone: Tone, state: string, detail: Html]

export function statusPage(site: Site, status: Status): string {
  const lines = linesOf(status)
  const named = (tone: Tone) => lines.filter((line) => line[1] === tone).map(([name]) => lowerFirst(name))
  const [broken, restricted] = [named('bad'), named('open')]
  const [tone, title]: [NoticeTone, string] =
    broken.length > 0
      ? ['bad', `Not everything works: ${broken.join(', ')}.`]
      : restricted.length > 0
        ? ['plain', `It works, with a restriction: ${restricted.join(', ')} are closed.`]
        : ['good', 'Everything works now.']
  const past = broken.length === 0 ? lastInterruption(status.days ?? []) : null
  return renderPage(site, {
    title: 'Status',
    path: '/status',
    description: `What works at this service now, and in the last ${DAYS} days.`,
    body: html`<h1>Status</h1>
      <${Notice} tone=${tone} title=${past ? `${title} ${past.when}` : title}>${past && `${past.how} `}Read at <${ShortTime} ms=${status.at} /> UTC.<//>
      <h2>Now</h2>
      <div class="now"><${Table} caption="Now" unseen columns=${[{ name: 'Part' }, { name: 'State' }]}
        rows=${lines.map(([name, tone, state, detail]) => [name, html`<${Badge} tone=${tone}>${state}<//> ${detail}`])} /></div>
      <${LastDays} days=${status.days} />
      <p class="aside">Every 5 seconds the service checks its database and its keys. A minute counts as available if each check in it
        succeeded, there was at least one, and the database could store. For programs: <a href="/readyz">/readyz</a> says of the process that answers whether it can serve what is stored.</p>`,
  })
}

/** The name of a part within a sentence. */
const lowerFirst = (name: string) => name.charAt(0).toLowerCase() + name.slice(1)

const NAMES: Readonly<Record<string, string>> = {
  process: 'Process that answers',
  database: 'Database',
  migrations: 'Tables of the database',
  keys: 'Signing keys',
  verifier: 'Local verifier',
  storage: 'Storage of the database',
}

/** What a probe that failed means for a reader. `/readyz` names the files and keys to the operator. */
const IN_WORDS: Readonly<Record<string, string>> = {
  process: 'It is shutting down.',
  database: 'It does not answer, or has no tables yet.',
  migrations: 'An update of the tables is not finished.',
  keys: 'No key is in force, so no receipt can be signed.',
  storage: 'Nothing new can be stored until the operator has freed space. What was stored can be read.',
}

function linesOf({ checks, refusal, work }: Status): Line[] {
  const probes = Object.entries(checks).map(
    ([name, { ok, detail = '' }]): Line => [
      NAMES[name] ?? name,
      ok ? 'good' : 'bad',
      ok ? 'works' : 'does not work',
      ok ? '' : (IN_WORDS[name] ?? detail),
    ],
  )
  const sales: Line = [
    'New verifications',
    refusal === null ? 'good' : 'open',
    refusal === null ? 'open' : 'closed',
    refusal ?? '',
  ]
  if (!work) return [...probes, sales]
  const { workers, due, oldest_seconds } = work
  return [
    ...probes,
    sales,
    [
      'Workers',
      workers ? 'good' : 'bad',
      workers ? 'work' : 'none',
      workers ? '' : 'Work that is accepted waits for one.',
    ],
    [
      'Queue',
      due === 0 ? 'good' : 'plain',
      `${inFigures(due)} due`,
      due === 0 ? '' : `the oldest for ${inFigures(Math.round(oldest_seconds))} s`,
    ],
  ]
}

/** The newest days in a row on which too many minutes were not available, in two sentences; null if the record has none. */
function lastInterruption(days: readonly Day[]): { when: string; how: string } | null {
  const isBad = ({ share }: Day) => share !== null && share < 0.999
  const end = days.findLastIndex(isBad)
  if (end === -1) return null
  const begin = days.findLastIndex((day, n) => n < end && !isBad(day)) + 1
  const sum = (of: 'minutes' | 'well') => days.slice(begin, end + 1).reduce((total, day) => total + day[of], 0)
  const [first, last] = [begin, end].map((n) => (n === days.length - 1 ? 'today' : days[n]?.day))
  const when = begin < end ? `was from ${first} to ${last}` : last === 'today' ? 'was today' : `was on ${last}`
  const [minutes, missed] = [sum('minutes'), sum('minutes') - sum('well')].map((number) =>
    inFigures(Math.round(number)),
  )
  return {
    when: `The last interruption ${when}.`,
    how: `It is over: the service was not available in ${missed} of ${minutes} minutes.`,
  }
}

/** Of a day, by the share of its minutes that were available. A day on which anything failed is not drawn as a good one. */
const toneOf = (share: number): StripTone => (share === 1 ? 'good' : share >= 0.95 ? 'open' : 'bad')
const LEGEND: Readonly<Record<StripTone, string>> = {
  good: 'every minute',
  open: '95 % of the minutes or more',
  bad: 'less than 95 %',
  plain: 'no data',
}

function LastDays({ days }: Pick<Status, 'days'>) {
  if (days === null)
    return html`<h2>The last ${DAYS} days</h2><p class="empty">The record cannot be read while the database does not answer.</p>`
  if (days.length === 0)
    return html`<h2>The last ${DAYS} days</h2><p class="empty">One mark for each day will be here, with the share of its minutes in which the
      service was available. The record begins by itself within a minute of the first start of a worker.</p>`
  const minutes = days.reduce((sum, day) => sum + day.minutes, 0)
  const well = days.reduce((sum, day) => sum + day.well, 0)
  const today = days.at(-1)
  return html`<h2>The last ${DAYS} days</h2>
    ${
      minutes > 0 &&
      html`<${Figures} figures=${[
        [`${named(days.length, 'day')} on record`, inFigures(days.length)],
        ['of recorded minutes available', inPercent(well, minutes)],
        ['today', today && today.share !== null ? inPercent(today.well, today.minutes) : 'no data'],
      ]} />`
    }
    <${Strip} id="days" title="Available, each day" legend=${LEGEND} from=${`${DAYS} days ago`} to="today" states=${statesOf(days)}
      description=${`${counted(days.length, `of the last ${DAYS} days is`, `of the last ${DAYS} days are`)} on record. ${minutes > 0 ? `${inPercent(well, minutes)} of their minutes were available.` : ''}`} />`
}

/** One state for each of the last days; those before the first record have no data. */
function statesOf(days: readonly Day[]): StripState[] {
  const before = Array.from({ length: DAYS - days.length }, (_, n): StripState => {
    const left = DAYS - n - 1
    return { name: `${left} days ago`, tone: 'plain', state: 'no data' }
  })
  return [
    ...before,
    ...days.map(({ day, minutes, well, share }): StripState => {
      if (share === null) return { name: day, tone: 'plain', state: 'no data' }
      return {
        name: day,
        tone: toneOf(share),
        state: `${inPercent(well, minutes)} of ${counted(Math.round(minutes), 'minute')} available`,
      }
    }),
  ]
}

/** Rounded down, so that only a day without any fault has 100 %. */
function inPercent(part: number, whole: number): string {
  return `${(Math.floor(Math.min(1, part / whole) * 10_000) / 100).toFixed(2)} %`
}
