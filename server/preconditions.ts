// If-Match and If-None-Match (RFC 9110 §13.1): whether the state is still the one that the caller last saw.
import { AppError } from './errors.ts'

export interface Preconditions {
  ifMatch?: string
  ifNoneMatch?: string
}

/**
 * Throws AppError `precondition_failed` if the change is meant for another state. @param etag null where nothing exists
 * yet
 */
export function requirePreconditions(given: Preconditions, etag: string | null): void {
  const { match, noneMatch } = evaluate(given, etag)
  if (!match) throw new AppError('precondition_failed', 'If-Match does not hold.')
  if (!noneMatch) throw new AppError('precondition_failed', 'If-None-Match does not hold.')
}

/**
 * Whether the caller of a read has the current state already. Throws AppError `precondition_failed` if the condition in
 * If-Match is not met.
 */
export function isNotModified(given: Preconditions, etag: string): boolean {
  const { match, noneMatch } = evaluate(given, etag)
  if (!match) throw new AppError('precondition_failed', 'If-Match does not hold.')
  return !noneMatch
}

function evaluate({ ifMatch, ifNoneMatch }: Preconditions, etag: string | null) {
  return {
    match: ifMatch === undefined || isListed(etag, ifMatch, { weakly: false }),
    noneMatch: ifNoneMatch === undefined || !isListed(etag, ifNoneMatch, { weakly: true }),
  }
}

const TAG = /[ \t]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)/y

/** Throws AppError `invalid_request` for a malformed list: if it were ignored, a conditional write would become unconditional. */
function isListed(etag: string | null, header: string, { weakly }: { weakly: boolean }): boolean {
  if (header.trim() === '*') return etag !== null
  const found: boolean[] = []
  TAG.lastIndex = 0
  do {
    const tag = TAG.exec(header)
    if (!tag) throw new AppError('invalid_request', 'If-Match and If-None-Match take * or quoted entity tags.')
    found.push(tag[2] === etag && (weakly || !tag[1]))
  } while (TAG.lastIndex < header.length)
  return found.includes(true)
}
