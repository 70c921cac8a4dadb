// Rows that ask the same are bought once: the first of them is bought, and the others, its twins, get its outcome.
import type { Row } from './rows.ts'

export interface GroupedRows {
  /** One of each, in the order of the input. */
  firsts: Row[]
  /** The others, by the id of the first. */
  twins: Map<string, Row[]>
}

/** Rows are the same if page, claim and greatest age are. */
export function groupRows(rows: readonly Row[]): GroupedRows {
  const firstOf = new Map<string, Row>()
  const twins = new Map<string, Row[]>()
  for (const row of rows) {
    const question = JSON.stringify([row.source_url, row.claim, row.max_age_seconds ?? null])
    const first = firstOf.get(question)
    const others = first && twins.get(first.id)
    if (others) others.push(row)
    else if (first) twins.set(first.id, [row])
    else firstOf.set(question, row)
  }
  return { firsts: [...firstOf.values()], twins }
}
