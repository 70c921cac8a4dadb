// The configuration of the running service, as its processes publish it, and where the environment of this shell differs. Secrets
// are not published: those of this shell stand for them, and what this shell does not have is named.
import { existsSync } from 'node:fs'
import { HIDDEN, hasHiddenCredentials, shownPart } from './config/credentials.ts'
import { type Config, publicSettings, readConfig } from './config.ts'
import type { Database } from './db/pool.ts'
import { listProcesses, type RunningProcess } from './operate/presence.ts'

export interface RunningService {
  processes: readonly RunningProcess[]
  /** Valid, with stand-ins for what is lacking. */
  config: Config
  /** The settings that the service has and whose values this shell does not know. */
  lacking: ReadonlySet<string>
  /** The settings that are not the same here, with both values as far as they may be shown. */
  differing: readonly { name: string; there: string; here: string }[]
}

/** The service whose processes are alive on this database; null if none is. Throws ConfigError if they make no valid configuration. */
export async function findRunningService(db: Database, own: Config): Promise<RunningService | null> {
  const processes = (await listProcesses(db)).filter(({ alive }) => alive)
  const process = processes.find(({ kind }) => kind !== 'worker') ?? processes[0]
  if (!process) return null
  const here = publicSettings(own)
  const differing = Object.keys({ ...here, ...process.settings })
    .map((name) => ({ name, there: process.settings[name] ?? '', here: here[name] ?? '' }))
    .filter(({ name, there, here }) => there !== here && !OF_THE_DATABASE.has(name))
  return { processes, differing, ...configOf(process.settings, here, own) }
}

/** This shell has found the database by its own settings. */
const OF_THE_DATABASE: ReadonlySet<string> = new Set(['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATA_DIR'])

function configOf(there: RunningProcess['settings'], here: Record<string, string>, own: Config) {
  const values: Readonly<Record<string, unknown>> = own.values
  const lacking = new Set<string>()
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(there)) {
    const isHidden = value === HIDDEN || hasHiddenCredentials(value)
    if (OF_THE_DATABASE.has(name) || (isHidden && here[name] === value)) {
      if (values[name] !== undefined) env[name] = String(values[name])
    } else if (isHidden || isFileElsewhere(name, value)) {
      lacking.add(name)
      Object.assign(env, STAND_INS.get(name) ?? (value === HIDDEN ? {} : { [name]: shownPart(value) }))
    } else if (value !== '') env[name] = value
  }
  return { config: readConfig(env), lacking }
}

/** A file of another machine, or of another working folder. */
function isFileElsewhere(name: string, value: string): boolean {
  return name.endsWith('_FILE') && value !== '' && !existsSync(value)
}

const ANY_SEED = { SIGNING_SEED: '00'.repeat(32) }
/** Values in the form of settings without which a configuration is not valid. Nothing is asked with them. */
const STAND_INS: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map([
  ['SIGNING_SEED', ANY_SEED],
  ['SIGNING_SEED_FILE', ANY_SEED],
  ['FIXTURE_CA_FILE', {}],
  ['TIMESTAMP_CA_FILE', {}],
  ['CDP_API_KEY_SECRET', { CDP_API_KEY_SECRET: Buffer.alloc(64).toString('base64') }],
  ...['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'OPERATOR_TOKEN', 'STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'].map(
    (name): [string, Record<string, string>] => [name, { [name]: 'not-known-to-this-shell' }],
  ),
])
