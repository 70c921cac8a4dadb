// Links to /try that fill its form. The page and the claim stand behind #, so they are sent to nobody before the reader presses its
// button.
import type { LookQuestion } from './look-call.ts'

/** @param page address of /try */
export function tryLink(page: URL, question: Partial<LookQuestion>): string {
  const link = new URL(page)
  link.hash = new URLSearchParams({ ...question }).toString()
  return link.href
}

/** What a link fills in. Empty for any other part behind #. */
export function questionIn(hash: string): Partial<LookQuestion> {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  const [source_url, claim] = [fields.get('source_url'), fields.get('claim')]
  return { ...(source_url !== null && { source_url }), ...(claim !== null && { claim }) }
}
