// The type of an operator command, and what all commands share: options, confirmations, and tables.
import type { Config } from '../../config.ts'
import type { Database } from '../../db/pool.ts'

export interface CommandOption {
  /** Name of the value in the help; without it the option is a switch. */
  value?: string
  about: string
}

/** What a call gives to its command. */
export interface CommandCall {
  /** The required arguments, in order. */
  args: readonly string[]
  /** Values of options, and `true` for switches. */
  options: Readonly<Record<string, string | true | undefined>>
  /** Print JSON and nothing else on stdout. */
  json: boolean
  /** Asks a person, unless `--yes` was given. Without a terminal the answer is no. */
  confirm(question: string): Promise<boolean>
}

export interface OperatorCommand {
  /** Names of the required arguments. */
  takes?: readonly string[]
  options?: Readonly<Record<string, CommandOption>>
  about: string
  /** Returns the exit code: 0 when all is well, 1 when something is not, 2 for a wrong call. */
  run(db: Database, config: Config, call: CommandCall): Promise<number>
}

/** A wrong call; the message says what is wrong. Exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** An option that is a whole number from 1; `fallback` if it is not given. Throws UsageError. */
export function countOption(call: CommandCall, name: string, fallback: number): number {
  const given = call.options[name]
  if (given === undefined) return fallback
  if (typeof given === 'string' && /^[1-9]\d{0,5}$/.test(given)) return Number(given)
  throw new UsageError(`--${name} takes a whole number from 1 to 999999.`)
}

export function textOption(call: CommandCall, name: string): string | undefined {
  const given = call.options[name]
  return given === true ? undefined : given
}

export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, null, 2))
}

/** Rows under headings, in columns that are as wide as their widest cell. Control characters are shown as dots. */
export function table(headings: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const cells = [headings, ...rows].map((row) => row.map((cell) => printable(cell === null ? '' : String(cell))))
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Text from callers and pages must not control a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Cf}/gu, '·')
}

/** For example `3 s`, `4 min`, `5 h`, `2 d`. */
export function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

/** For example `2026-11-22 09:15:39`, in UTC. */
export function utc(date: Date): string {
  return date.toISOString().slice(0, 19).replace('T', ' ')
}
