// The building blocks of every page: badges, notices, definition lists, tables, figures, code to copy, form fields, times.
// The same markup is made on the server and in the browser; parts.css gives it its look.
import { inWords } from '../document-words.ts'
import { type Html, html } from './html.ts'

/**
 * For states: good, open (needs attention), bad, waiting (nothing is wrong, and more will come) and plain. For verdicts: `supports` and `contradicts`. For signatures: `proved`
 * and `refuted`.
 */
export type Tone = 'good' | 'open' | 'bad' | 'waiting' | 'plain' | 'supports' | 'contradicts' | 'proved' | 'refuted'

export function toneClass(tone: Tone): string {
  return tone === 'plain' ? '' : `tone-${tone}`
}

/** A verdict or a state in one word or a few. The tone never says more than the words. */
export function Badge({ tone = 'plain', children }: { tone?: Tone; children?: Html }): Html {
  return html`<strong class=${`tag ${toneClass(tone)}`.trim()}>${children}</strong>`
}

/** The verdicts of results. */
export const VERDICT_TONES: Readonly<Record<string, Tone>> = {
  supports: 'supports',
  contradicts: 'contradicts',
  mixed: 'open',
  insufficient_evidence: 'open',
  not_assessed: 'plain',
}

/** The tones of verdicts are not for notices: a reader would take them for one. */
export type NoticeTone = Exclude<Tone, 'open' | 'supports' | 'contradicts'>

/** Something to know before reading on. @param title begins the text, in bold */
export function Notice({
  tone = 'plain',
  title,
  children,
}: {
  tone?: NoticeTone
  title?: Html
  children?: Html
}): Html {
  return html`<div class=${`notice ${toneClass(tone)}`.trim()} role=${tone === 'bad' ? 'alert' : 'note'}>
    <p>${title && html`<strong>${title}</strong>${' '}`}${children}</p>
  </div>`
}

/** Names with their values, one a line. Entries whose value is null are left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: Html])[] }): Html {
  return html`<dl class="facts">${facts
    .filter(([, value]) => value !== null)
    .map(
      ([name, value]) => html`<div key=${name} class=${`fact-${name.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`}>
        <dt>${name}</dt><dd><bdi>${value}</bdi></dd>
      </div>`,
    )}</dl>`
}

export interface Column {
  name: Html
  /** Aligned to the right, in figures of one width. */
  number?: boolean
}

export interface TableProps {
  /** Says what the table holds; read by screen readers, and shown unless `unseen`. */
  caption: string
  unseen?: boolean
  columns: readonly Column[]
  /** The first cell of a row is its heading. */
  rows: readonly (readonly Html[])[]
  /** Text to show when there are no rows. */
  empty?: Html
  /** Whether each row stands on its own in a narrow window, its cells below each other with the names of their columns. */
  stacks?: boolean
}

/** A table of numbers alone is compared by column, so it scrolls where it does not fit. Any other one of more than three columns stacks. */
const isForReading = (columns: readonly Column[]) => columns.length > 3 && columns.slice(1).some((one) => !one.number)

/** The name of a column that needs more room than others beside the cells of a row that stacks. */
export const hasLongWord = (name: string): boolean => name.split(/\s/).some((word) => word.length > LONG_WORD)
const LONG_WORD = 15

export function Table(props: TableProps): Html {
  const { caption, unseen = false, columns, rows, empty = 'There are none.', stacks = isForReading(columns) } = props
  const align = (column: number) => (columns[column]?.number ? 'number' : undefined)
  // Cells that are shown as blocks are cells for screen readers by their roles alone.
  const role = (name: string) => (stacks ? name : undefined)
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  const isWide = columns.some(({ name }) => typeof name === 'string' && hasLongWord(name))
  return html`<div class=${stacks ? `table stacks${isWide ? ' wide' : ''}` : 'table'} tabindex="0" role="region" aria-label=${caption}><table role=${role('table')}>
    <caption class=${unseen ? 'unseen' : undefined}>${caption}</caption>
    <thead role=${role('rowgroup')}><tr role=${role('row')}>${columns.map(({ name }, n) =>
      name === ''
        ? html`<td key=${n} role=${role('cell')}></td>`
        : html`<th key=${n} scope="col" role=${role('columnheader')} class=${align(n)}>${name}</th>`,
    )}</tr></thead>
    <tbody role=${role('rowgroup')}>${rows.map(
      (row, index) =>
        html`<tr key=${index} role=${role('row')}>${row.map((cell, n) =>
          n === 0
            ? html`<th key=${n} scope="row" role=${role('rowheader')} class=${align(n)}>${cell}</th>`
            : html`<td key=${n} role=${role('cell')} data-column=${stacks ? columns[n]?.name : undefined} class=${align(n)}>${cell}</td>`,
        )}</tr>`,
    )}</tbody>
  </table></div>`
}

/** Numbers in large type, each with what it counts. */
export function Figures({ figures }: { figures: readonly (readonly [name: string, value: Html])[] }): Html {
  return html`<dl class="figures">${figures.map(
    ([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`,
  )}</dl>`
}

/** Code or commands. `copy.ts` gives each a button where scripts run. @param label what it is, in a few words */
export function Code({ label, text }: { label: string; text: string }): Html {
  return html`<figure class="code">
    <figcaption>${label}</figcaption>
    <pre tabindex="0" aria-label=${label} data-copy><code>${text}</code></pre>
  </figure>`
}

export interface FieldProps {
  id: string
  label: string
  name?: string
  type?: 'text' | 'password' | 'number' | 'search' | 'url'
  value?: string
  /** How the value should look, below the field. */
  hint?: Html
  /** What is wrong with the value. */
  problem?: Html
  required?: boolean
  autocomplete?: string
}

/** An input with its label, its hint and what is wrong with it, which a screen reader reads together. */
export function Field({ id, label, hint, problem, autocomplete = 'off', ...input }: FieldProps): Html {
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input id=${id} name=${input.name ?? id} type=${input.type ?? 'text'} value=${input.value} required=${input.required}
      autocomplete=${autocomplete} spellcheck=${false} aria-describedby=${described || undefined}
      aria-invalid=${problem ? 'true' : undefined} />
    ${hint && html`<p id=${`${id}-hint`} class="detail">${hint}</p>`}
    ${problem && html`<p id=${`${id}-problem`} class="problem">${problem}</p>`}
  </div>`
}

/** A moment in words, in UTC. */
export function Time({ ms }: { ms: number }): Html {
  const at = new Date(ms)
  return html`<time class="in-words" datetime=${at.toISOString()}>${inWords.format(at)}</time>`
}

/** A moment in few characters, in UTC, for tables: `2026-11-22 13:20:05`. */
export function ShortTime({ ms }: { ms: number }): Html {
  const iso = new Date(ms).toISOString()
  return html`<time datetime=${iso}>${iso.slice(0, 19).replace('T', ' ')}</time>`
}

const grouped = new Intl.NumberFormat('en-GB')

/** `1234567` as `1,234,567`. */
export function inFigures(number: number): string {
  return grouped.format(number)
}

/** `1 worker`, `1,200 workers`. @param many where it is not `one` with an s */
export function counted(number: number, one: string, many?: string): string {
  return `${inFigures(number)} ${named(number, one, many)}`
}

/** The name of what is counted, where the number stands apart from it. */
export function named(number: number, one: string, many = `${one}s`): string {
  return number === 1 ? one : many
}
