// Plain text for people: rows under a heading, and names with values.
import { visible } from '../arguments.ts'

export type Cell = string | number | boolean | null | undefined

/** Columns as wide as their longest cell, under their names in capitals. */
export function table<T>(rows: readonly T[], columns: Readonly<Record<string, (row: T) => Cell>>): string {
  const names = Object.keys(columns)
  const lines = [
    names.map((name) => name.toUpperCase()),
    ...rows.map((row) => Object.values(columns).map((cellOf) => wordOf(cellOf(row)))),
  ]
  const widths = names.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)))
  return lines.map((line) => `${line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()).join('\n')
}

/** One line per member: its name, then its value. */
export function fields(members: Readonly<Record<string, Cell>>): string {
  const width = Math.max(...Object.keys(members).map((name) => name.length)) + 1
  return Object.entries(members)
    .map(([name, value]) => `${`${name}:`.padEnd(width)} ${wordOf(value)}`)
    .join('\n')
}

function wordOf(cell: Cell): string {
  return cell === null || cell === undefined ? '-' : visible(String(cell))
}

/** Milliseconds since 1970 as an ISO time. */
export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
