// Asks each time-stamp authority once about a trial text, for `doctor`.
import { withoutCredentials } from '../config/credentials.ts'
import type { TimestampSettings } from '../config/timestamps.ts'
import { errorMessage } from '../errors.ts'
import { askAuthority, openReplyVerifier } from './time-stamp-authority.ts'

export interface AuthorityFinding {
  ok: boolean
  subject: string
  detail: string
  cure?: string
}

const SUBJECT = 'timestamps'
const CURE = 'correct TIMESTAMP_URLS or TIMESTAMP_CA_FILE; until it answers, its signatures of checkpoints are missing'
/** A person waits. */
const TIMEOUT_MS = 5000

/** One finding for each authority; none where none is asked. */
export async function inspectAuthorities(settings: TimestampSettings | undefined): Promise<AuthorityFinding[]> {
  if (!settings) return []
  const verifier = await openReplyVerifier(settings.ca)
  const trial = Buffer.from(`countersign doctor ${new Date().toISOString()}\n`)
  return Promise.all(
    settings.urls.map(async (url) => {
      const shown = withoutCredentials(url)
      try {
        const { stamp } = await askAuthority(url, trial, verifier, { timeoutMs: TIMEOUT_MS })
        return { ok: true, subject: SUBJECT, detail: `${shown} answers: ${stamp.time}, by ${stamp.authority}` }
      } catch (error) {
        return { ok: false, subject: SUBJECT, detail: `${shown}: ${errorMessage(error)}`, cure: CURE }
      }
    }),
  )
}
