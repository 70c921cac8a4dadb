// Shared by the commands of the control toolkit: the service and the key, paging, and output.
import { readUrl, UsageError } from '../arguments.ts'
import type { Countersign } from '../client.ts'
import { fromEnvironment } from './environment.ts'
import { checkNew, writeNew } from './files.ts'
import { explain, json, note, print } from './output.ts'
import { openClient } from './patience.ts'
import { readSecretFile } from './secret-file.ts'

export const SERVICE = {
  service: { type: 'string', value: 'URL', help: 'where the service is; default: COUNTERSIGN_SERVICE' },
} as const

export const ACCOUNT = {
  ...SERVICE,
  key: {
    type: 'string',
    value: 'FILE',
    help: 'holds the API key, mode 600; default: COUNTERSIGN_KEY, which names the file or is the key',
  },
} as const

export const SAVE = {
  save: {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'put the secret into this new file of mode 600 instead of printing it',
  },
} as const

export const LIMIT = {
  limit: { type: 'string', value: 'N', default: '100', help: 'the longest list, newest first; default: 100' },
} as const

/** A client without credentials. Throws a UsageError where no service is named. */
export function openService({ service }: { service?: string }): Countersign {
  return openClient({ baseUrl: serviceUrl(service) })
}

/** A client with the API key of an account. Throws a UsageError where no service or no key is named. */
export async function openAccount(options: { service?: string; key?: string }): Promise<Countersign> {
  const baseUrl = serviceUrl(options.service)
  return openClient({ baseUrl, apiKey: await readApiKey(options.key) })
}

/** The address of `--service`, else of COUNTERSIGN_SERVICE. Throws a UsageError. */
export function serviceUrl(service: string | undefined = fromEnvironment('COUNTERSIGN_SERVICE')): string {
  if (service === undefined) throw new UsageError('Which service? Give --service URL, or set COUNTERSIGN_SERVICE.')
  return readUrl(service)
}

/** The key of `--key`, else of COUNTERSIGN_KEY: a path, or the key itself. Throws a UsageError. */
export async function readApiKey(file: string | undefined): Promise<string> {
  const set = fromEnvironment('COUNTERSIGN_KEY')
  if (file !== undefined && API_KEY.test(file))
    throw new UsageError('--key takes a file, not the key: arguments can be seen by other users of this machine.')
  if (file === undefined && set === undefined)
    throw new UsageError('Which account? Give --key FILE, a file with the API key, or set COUNTERSIGN_KEY.')
  if (file === undefined && API_KEY.test(set ?? '')) return set ?? ''
  const path = file ?? set ?? ''
  return await readSecretFile(path, 'an API key', (key) => {
    // Never quoted: it may be another secret.
    if (!API_KEY.test(key)) throw new UsageError(`${path} does not hold an API key, which begins with ctk_.`)
    return key
  })
}

const API_KEY = /^ctk_[A-Za-z0-9_-]+$/

/** Prints the answer of the service: as it is with --json, else as text for people. Returns 0. */
export function answer(value: unknown, asJson: boolean | undefined, text: () => string): 0 {
  return print(asJson ? json(value) : `${text()}\n`)
}

/**
 * Obtains an answer whose `member` is a secret that is shown once, if it is there, and prints it. With `save` the secret goes
 * into that file, and what is printed has the file's name in its place. Returns 1 where the file cannot be written after all: the
 * secret is printed then, because it does not come again.
 */
export async function answerWithSecret<T extends object>(
  obtain: () => Promise<T>,
  member: keyof T & string,
  { save, json: asJson }: { save?: string; json?: boolean },
  text: (value: T) => string,
): Promise<0 | 1> {
  await checkNew(save)
  const value = await obtain()
  const secret = value[member] as string | undefined
  const written = save !== undefined && secret !== undefined ? writeNew(save, `${secret}\n`, 0o600) : Promise.resolve()
  const fault = await written.then(
    () => null,
    (error: Error) => error,
  )
  const isKept = save !== undefined && !fault
  const shown = secret !== undefined && isKept ? { ...value, [member]: `(in ${save})` } : value
  answer(shown, asJson, () => text(shown))
  if (secret === undefined && save !== undefined) note(`No new secret came, so there is no ${save}.\n`)
  if (secret !== undefined && !isKept) note('This secret is shown once. Keep it, and keep it secret.\n')
  if (fault) explain(fault, asJson ?? false)
  return fault ? 1 : 0
}

export interface Page<T> {
  rows: T[]
  next: string | number | null
}

/** Follows the pages of a list, of at most `pageSize` rows each, up to `limit` rows. */
export async function collect<T>(
  limit: number,
  pageSize: number,
  pageOf: (limit: number, before: string | number | undefined) => Promise<Page<T>>,
): Promise<Page<T>> {
  const rows: T[] = []
  let next: string | number | null = null
  do {
    const page = await pageOf(Math.min(limit - rows.length, pageSize), next ?? undefined)
    rows.push(...page.rows)
    next = page.next
  } while (next !== null && rows.length < limit)
  return { rows, next }
}

/** A whole number within bounds, or a UsageError. */
export function readWhole(option: string, text: string, least = 1, most = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most))
    throw new UsageError(
      `${option} ${text} is not a whole number ${most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`}.`,
    )
  return value
}

/** The value of an option that the command cannot do without, or a UsageError. */
export function needed(option: string, value: string | undefined): string {
  if (value === undefined) throw new UsageError(`${option} is missing.`)
  return value
}
