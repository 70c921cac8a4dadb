// The status: everything that an operator needs first, and the warnings that are derived from it.
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { type Facts, readFacts, readUrgent } from './facts.ts'
import { type Warning, warningsOf } from './warnings.ts'

export type Status = Facts & { warnings: Warning[] }

/** Reads the status. It changes nothing. */
export async function readStatus(
  db: Database,
  config: Pick<Config, 'resultRetentionSeconds' | 'capture'>,
): Promise<Status> {
  const facts = await readFacts(db, config)
  return { ...facts, warnings: warningsOf(facts) }
}

/** The warnings of the status alone, which are read often. */
export async function readWarnings(
  db: Database,
  config: Pick<Config, 'resultRetentionSeconds' | 'capture'>,
): Promise<Warning[]> {
  return warningsOf(await readUrgent(db, config))
}
