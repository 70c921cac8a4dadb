// What may be added to a claim that was read with a context: words of the context. A reader sees from that how the claim was
// understood, and that nothing else was put into it.
import type { ClaimResult, ClaimsResult } from './result.ts'

/** What is wrong with how the claims of a result were read; null if nothing is. */
export function readingFault({ context, claims }: Pick<ClaimsResult, 'context' | 'claims'>): string | null {
  if (context !== undefined && typeof context !== 'string') return 'context is not text'
  for (const [i, one] of claims.entries()) {
    const fault = faultOf(one, context)
    if (fault) return `claim ${i + 1}: ${fault}`
  }
  return null
}

function faultOf(one: ClaimResult, context: string | undefined): string | null {
  if (!Object.hasOwn(one, 'claim_as_read')) return null
  const { claim, claim_as_read: read } = one
  if (typeof read !== 'string') return 'claim_as_read is not text'
  if (Array.from(read).length > MOST_CHARS) return `claim_as_read is longer than ${MOST_CHARS} characters`
  if (read === claim) return 'claim_as_read is the claim itself'
  if (context === undefined) return 'claim_as_read without a context'
  const given = new Set([...wordsOf(claim), ...wordsOf(context)])
  const added = wordsOf(read).find((word) => !given.has(word) && !FUNCTION_WORDS.has(word))
  return added === undefined ? null : `claim_as_read adds “${added}”, which is not in the context`
}

/** Without case, compatibility forms and accents. */
function wordsOf(text: string): string[] {
  const bare = text
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{Mn}/gu, '')
  return bare.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
}

const MOST_CHARS = 3000
/** Words that say nothing by themselves. A word that denies is none of them. */
const FUNCTION_WORDS: ReadonlySet<string> = new Set(
  (
    'a an the of in on at to for by from with and or is are was were be been has have had do does did it its he she they his her ' +
    'their this that these those as der die das des dem den ein eine einer eines im am zum zur von und ist war le la les l d un une ' +
    'du de des au aux et est el los las del lo y es il gli i uno una della o os um uma do da dos das e het een van en'
  ).split(' '),
)
