// The timestamps of `countersign verify`: the file with the replies beside an export, and the roots that are trusted.
import { existsSync } from 'node:fs'
import * as tls from 'node:tls'
import { UsageError } from '../../arguments.ts'
import type { Check } from '../../checks.ts'
import { type OutsideTime, OutsideTimes, readReplies } from '../../outside-time.ts'
import { readable } from '../files.ts'
import { readInput } from '../input-file.ts'

export interface TimestampOptions {
  timestamps?: string | undefined
  'timestamp-ca'?: string | undefined
}

/** The replies that were named, or those in the file beside the export; undefined where there are none. Throws a UsageError. */
export async function findReplies(
  file: string,
  { timestamps, 'timestamp-ca': ca }: TimestampOptions,
): Promise<OutsideTimes | undefined> {
  const beside = `${file}.timestamps`
  const named = timestamps ?? (file !== '-' && existsSync(beside) ? beside : undefined)
  if (named === undefined) {
    if (ca !== undefined)
      throw new UsageError('--timestamp-ca is for timestamps, and there are none: give --timestamps FILE.')
    return undefined
  }
  return readable(named, async () => new OutsideTimes(readReplies((await readInput(named)).toString())))
}

/** The check of the replies, after the chain was verified. Without --timestamp-ca the roots count that Node trusts. */
export async function judgeReplies(
  replies: OutsideTimes,
  { 'timestamp-ca': ca }: TimestampOptions,
): Promise<{ check: Check; times: OutsideTime[] }> {
  const roots = ca === undefined ? systemRoots() : (await readInput(ca)).toString()
  return replies.judge(roots, ca !== undefined)
}

/** Node 20 does not list the roots that a machine adds. */
export function systemRoots(): string {
  const { getCACertificates } = tls as Partial<Pick<typeof tls, 'getCACertificates'>>
  return (getCACertificates?.('default') ?? tls.rootCertificates).join('\n')
}
