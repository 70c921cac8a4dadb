// How a claim is read that refers to something outside it: "it" and "the company" are replaced by the subject of the context that
// came with the request. A rule, so that the same claim and context are always read alike.
import { functionWordsOf } from '../../workers/text/language.ts'
import { foldWord } from '../../workers/text/tokens.ts'

/**
 * The claims as they are assessed, in their order; a claim that refers to nothing, or to something that the context does not
 * name for certain, is unchanged. Every word that is added stands in the context or is a function word.
 */
export function readWithContext(claims: readonly string[], context: string | undefined): string[] {
  const subject = context === undefined ? null : subjectOf(context)
  if (context === undefined || subject === null) return [...claims]
  return claims.map((claim) => {
    const read = readAs(claim, subject)
    return read !== null && addsOnlyFrom(context, claim, read) ? read : claim
  })
}

/** Whether every word of `read` stands in the claim or the context, function words aside. */
export function addsOnlyFrom(context: string, claim: string, read: string): boolean {
  const given = new Set([...wordsOf(claim), ...wordsOf(context)])
  const functional = functionWordsOf(wordsOf(read))
  return wordsOf(read).every((word) => given.has(word) || functional.has(word))
}

const wordsOf = (text: string): string[] => (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map(foldWord)

/**
 * What the first sentence of a context is about: the words before its verb, or the whole of a context without a verb. Null where
 * the sentence begins with no name or noun that can be told.
 */
function subjectOf(context: string): string | null {
  const [line = ''] = context.trim().split(/\n|(?<=[\p{L}\p{N}]{3}[.!?])\s+(?=\p{Lu})/u)
  const sentence = line.replace(INTRODUCTION, '').trim()
  const words = sentence.split(/\s+/)
  const named: string[] = []
  const begin = words[0] !== undefined && DETERMINER.test(words[0]) ? 1 : 0
  const isNamed = /^\p{Lu}/u.test(words[begin] ?? '')
  let ended = false
  for (const [i, word] of words.entries()) {
    const bare = word.replace(/[.,;:!?)\]]+$/u, '')
    const isLower = /^\p{Ll}/u.test(word)
    ended = VERB.test(bare) || (i > begin && isLower && (isNamed ? !JOINS.test(bare) : /ed$/.test(bare)))
    if (ended || /^[(\u2013\u2014-]/u.test(word)) break
    named.push(bare)
    if (bare !== word && i < words.length - 1 && !/\.$/.test(word)) {
      ended = true
      break
    }
  }
  while (named.length > 0 && JOINS.test(named.at(-1) ?? '')) named.pop()
  const subject = named.join(' ')
  const isWhole = !ended && named.length === words.length
  const refers = REFERRING.test(subject)
  if (named.length <= begin || refers || named.length > (isWhole ? MOST_WORDS_ALONE : MOST_WORDS)) return null
  return subject
}

/** The claim with the subject in place of the words that refer to it; null if none does. */
function readAs(claim: string, subject: string): string | null {
  if (claim.toLowerCase().includes(subject.toLowerCase())) return null
  const lead = /^\s*/.exec(claim)?.[0] ?? ''
  const said = claim.slice(lead.length)
  if (EXPLETIVE.test(said)) return null
  const pronoun = PRONOUN.exec(said)
  if (pronoun) {
    if (PERSONAL.test(pronoun[0]) && !isPerson(subject)) return null
    return `${lead}${capital(subject)}${said.slice(pronoun[0].length - 1)}`
  }
  const possessive = POSSESSIVE.exec(said)
  if (possessive && PERSONAL.test(possessive[0]) && !isPerson(subject)) return null
  if (possessive) return `${lead}${capital(subject)}: ${said}`
  const noun = NOUN.exec(said)
  // Told more closely, or of something that the claim itself names.
  if (!noun || QUALIFIED.test(said.slice(noun.index + noun[0].length))) return null
  if (
    said
      .slice(0, noun.index)
      .split(/\s+/)
      .some((word) => isName(word))
  )
    return null
  const inside = noun.index === 0 ? capital(subject) : subject.replace(/^(The|A|An)\b/, (word) => word.toLowerCase())
  return `${lead}${said.slice(0, noun.index)}${inside}${said.slice(noun.index + noun[0].length)}`
}

function isName(word: string): boolean {
  return /^\p{Lu}/u.test(word) && !BEGINNING.test(word)
}

/** A name of two to four words that is not one of an organization. */
function isPerson(subject: string): boolean {
  const words = subject.split(' ')
  const isNames = words.every((word) => /^\p{Lu}/u.test(word) || JOINS.test(word))
  return isNames && words.length >= 2 && words.length <= 5 && !DETERMINER.test(subject) && !ORGANIZATION.test(subject)
}

const capital = (text: string) => text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase())

const MOST_WORDS = 12
/** Of a context that has no verb. */
const MOST_WORDS_ALONE = 16
const INTRODUCTION =
  /^(?:(?:this|the) (?:page|article|text|report|document|site|website|passage|story|press release) (?:is |was )?(?:about|on|describes|concerns|covers)\s+|(?:about|concerning|regarding|re|context|subject|topic|company|product)\s*:?\s+)/i
const DETERMINER = /^(?:the|a|an)\b/i
const JOINS = /^(?:of|the|and|for|in|on|at|de|del|della|der|des|di|du|el|la|le|les|von|van|zu|y|&)$/i
const VERB =
  /^(?:is|are|was|were|be|been|has|have|had|does|do|did|will|would|can|could|may|might|shall|should|must|who|which|that|says|said|lies|stands|makes|made|sells|sold|offers|opened|began|became|runs|ran|won|wrote|grew|gave|took|went|came|held|led|builds|built|owns)$/i
const PRONOUN = /^(?:it|he|she|they)\s/i
const PERSONAL = /^(?:he|she|his|her)\s/i
const POSSESSIVE = /^(?:its|his|her|their)\s/i
/** As the whole subject of a context, these name nothing. */
const REFERRING = /^(?:it|he|she|they|we|i|you|this|that|these|those|there|here|one|its|his|her|their|our|my|your)\b/i
/** Of claims that begin with a word in upper case that is no name. */
const BEGINNING =
  /^(?:in|on|at|by|since|after|before|during|for|from|as|when|while|until|over|under|today|last|this|that|the|a|an|all|most|some|many|according)$/i
const ORGANIZATION =
  /\b(?:inc|ltd|llc|plc|gmbh|ag|corp|corporation|company|co|group|university|college|institute|bank|association|foundation|agency|ministry|department|committee|council|club|team|party|union|school|hospital|museum)\b/i
/** "It" that refers to nothing. */
const EXPLETIVE =
  /^it (?:is|was|has been|seems|appears) (?:\S+ly )?(?:known|said|likely|unlikely|possible|impossible|clear|true|false|expected|reported|estimated|believed|thought|argued|claimed|raining|snowing)\b/i
/** A thing named by its kind alone. */
const NOUN =
  /\b(?:the|this|that) (?:company|firm|organi[sz]ation|corporation|business|agency|institution|institute|charity|foundation|university|college|school|hospital|city|town|village|county|country|nation|island|river|lake|mountain|region|building|bridge|harbou?r|port|church|castle|tower|museum|library|station|airport|stadium|ship|vessel|aircraft|plane|product|device|software|library|tool|service|app|platform|website|book|novel|film|movie|series|song|album|game|author|writer|artist|singer|scientist|politician|president|minister|mayor|person|man|woman|team|club|band|party|group|project|programme|program|study|law|act|treaty|drug|medicine|vaccine|disease|species|event|festival|battle|war)\b/i
/** What stands behind a thing that is told more closely: "the city of Paris". */
const QUALIFIED = /^\s+(?:of|that|which|who|called|named|in|at|\p{Lu}\p{Ll}+)\b/u
