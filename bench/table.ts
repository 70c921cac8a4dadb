// What a part prints: a heading, one line per comparison, and what held it back.
import type { Standing } from './rounds.ts'

export function printHeading(name: string, compared: string) {
  console.log(`\n${name}: ${compared}`)
}

/** The service's own row comes first; the indented rows below are its peers. */
export function printStandings([ours, ...others]: Standing[]) {
  if (ours) console.log(`  ${columns(ours.what, `${figure(ours.rate)}/s`)}`)
  for (const { what, rate, ratio, aim } of others) {
    const compared = `ours is ${figure(ratio)} of it`.padStart(22)
    const judged = aim === undefined ? '' : `   aim ${figure(aim)}: ${ratio >= aim ? 'met' : 'MISSED'}`
    console.log(`    ${columns(what, `${figure(rate)}/s`, WIDTH - 2)}${compared}${judged}`)
  }
}

export function printNote(text: string) {
  console.log(`  ${text}`)
}

/** Lines of figures below a heading; all but the first column to the right. */
export function printRows(rows: readonly (readonly [string, ...string[]])[]) {
  for (const [first, ...others] of rows)
    console.log(`  ${first.padEnd(WIDTH)}${others.map((text) => text.padStart(16)).join('')}`)
}

/** Three digits: more is not to be had on a shared machine. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
}

function columns(what: string, rate: string, width = WIDTH) {
  return what.padEnd(width) + rate.padStart(10)
}

const WIDTH = 52

/** Three figures of a list of times, in words. */
export function describe(values: number[]): string {
  if (values.length === 0) return 'none'
  return `p50 ${figure(quantile(values, 0.5))}, p99 ${figure(quantile(values, 0.99))}, longest ${figure(Math.max(...values))}`
}

/** The value below which that share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}
