// The outcome of a check as its formats need it: each citation with its place in the file, and the sums.
import type { Judged, Level, Status } from './judgement.ts'
import { LEVELS } from './judgement.ts'
import type { Lines } from './report.ts'

export interface Placed extends Judged {
  level: Level
  line: number
  column: number
  endLine: number
  endColumn: number
}

export interface Outcome {
  /** As named on the command line. */
  file: string
  service: string
  /** RFC 3339. */
  checkedAt: string
  citations: Placed[]
  pages: number
  /** Null where no verdicts were asked for. */
  verdicts: VerdictSums | null
}

/** The outcome for the claims that a quote check could not decide. */
export interface VerdictSums {
  wanted: number
  /** By this run. */
  bought: number
  /** By earlier runs. */
  kept: number
  /** Wanted, and not there. */
  missing: number
  spentUsd: string
  /** Where results and receipts are; null where there are none. */
  folder: string | null
}

export function place(judged: readonly Judged[], lines: Lines): Placed[] {
  return judged.map((one) => {
    const from = lines.at(one.location.start)
    const to = lines.at(one.location.end)
    return { ...one, level: LEVELS[one.status], ...from, endLine: to.line, endColumn: to.column }
  })
}

/** Whether no citation is known to be wrong and all were checked. */
export function allHold({ citations }: Outcome): boolean {
  return citations.every(({ level }) => level !== 'error')
}

/** How many citations have each status, in the order of `LEVELS`; those without any are left out. */
export function countByStatus(citations: readonly { status: Status }[]): Partial<Record<Status, number>> {
  const counts: Partial<Record<Status, number>> = {}
  for (const status of Object.keys(LEVELS) as Status[]) {
    const count = citations.filter((one) => one.status === status).length
    if (count > 0) counts[status] = count
  }
  return counts
}

/** What the report says there: the quotation, the sentence, or the address. */
export function saidBy({ kind, parts, sentence, url }: Judged): string {
  if (kind === 'quotation') return parts.map(({ text }) => text).join(' … ')
  if (kind === 'fragment') return `#:~:text=${parts.map(({ text }) => text).join(', ')}`
  return sentence ?? url
}
