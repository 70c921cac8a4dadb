// If-Match and If-None-Match (RFC 9110 §13.1): whether a request still means what its caller last saw.
import { AppError } from './errors.ts'

export interface Preconditions {
  ifMatch?: string
  ifNoneMatch?: string
}

/** Refuses a change that was meant for another state than the present. @param etag null where there is nothing yet */
export function requirePreconditions(asked: Preconditions, etag: string | null): void {
  const { match, noneMatch } = judge(asked, etag)
  if (!match) throw new AppError('precondition_failed', 'If-Match does not hold.')
  if (!noneMatch) throw new AppError('precondition_failed', 'If-None-Match does not hold.')
}

/** True where the caller of a read has the present state already. Throws where If-Match asks for another. */
export function isNotModified(asked: Preconditions, etag: string): boolean {
  const { match, noneMatch } = judge(asked, etag)
  if (!match) throw new AppError('precondition_failed', 'If-Match does not hold.')
  return !noneMatch
}

function judge({ ifMatch, ifNoneMatch }: Preconditions, etag: string | null) {
  return {
    match: ifMatch === undefined || isListed(etag, ifMatch, { weakly: false }),
    noneMatch: ifNoneMatch === undefined || !isListed(etag, ifNoneMatch, { weakly: true }),
  }
}

const TAG = /[ \t]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)/y

/** A malformed list is refused, not ignored: a write that was to be conditional must not pass for one that is not. */
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
