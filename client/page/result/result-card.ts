// The card of a result, the same on every page: for each claim the verdict, the claim, the explanation, the quotes in their context and
// what raises doubt; then when and by what it was read. What was proved comes last, as the children of the card.
import { flagInWords } from '../../flag-words.ts'
import { FRESH_VERDICTS, VERDICT_WORDS } from '../../verdict-words.ts'
import { type Html, html } from '../html.ts'
import { counted, Time } from '../parts.ts'
import { assessorOf, type CardClaim, type CardResult } from './card-result.ts'
import { passagesOf, webAddress } from './passages.ts'
import { Mark, PassageView } from './quotes-view.ts'

/** What the checks of a changed file found, in words, by the part of the card. */
export interface CardMarks {
  /** By the index of the claim. */
  verdicts: ReadonlyMap<number, string>
  /** How a claim was read, by its index. */
  readings: ReadonlyMap<number, string>
  text: string | undefined
  /** When and by what it was read. */
  reading: string | undefined
  receipt: string | undefined
  /** Where no part can be named. */
  card: string | undefined
}

export interface ResultCardProps {
  /** From `cardOf`. */
  result: CardResult
  /** Address of the page with the accuracy of assessors; null where no service is known. */
  accuracy: string | null
  /** Id of the heading with the verdict; the cards of one page need different ones. */
  id?: string
  /** False for a file that was changed or whose key is unknown: then its verdict has no colour, and is said to be the file's. */
  isProved?: boolean
  /** It is proved, but its verdict differs when made again: then the verdict has no colour either. */
  differs?: boolean
  /** False for an example whose page is nowhere: then nothing links to it. */
  isReachable?: boolean
  /** Of a changed file. */
  marks?: CardMarks | undefined
  /** Whether it is genuine, in a line below the verdict. */
  outcome?: Html
  /** What was proved. */
  children?: Html
}

export function ResultCard({
  result,
  accuracy,
  id = 'verdict',
  isProved = true,
  differs = false,
  isReachable = true,
  marks,
  outcome,
  children,
}: ResultCardProps): Html {
  const { claims, overview, shared_flags } = result
  const isSeveral = claims.length > 1
  return html`<article class=${isProved && !differs ? 'result-card' : 'result-card unproved'} aria-labelledby=${isSeveral ? `${id}-all` : id}>
    ${marks?.card && html`<${Mark} title="Changed">${marks.card}<//>`}
    ${
      isSeveral &&
      html`<header class="overview"><p id=${`${id}-all`}>${overview}</p>
        ${isProved && claims.some(isSaying) && html`<p class="limit">${LIMIT}</p>`}</header>
        ${outcome}`
    }
    ${claims.map(
      (
        one,
        n,
      ) => html`<${Claim} key=${n} id=${n === 0 ? id : `${id}-${n + 1}`} claim=${one} isProved=${isProved} differs=${differs} isReachable=${isReachable}
        isChanged=${marks !== undefined} verdictMark=${marks?.verdicts.get(n)} readingMark=${marks?.readings.get(n)} outcome=${!isSeveral && outcome}>
        ${isProved && !isSeveral && isSaying(one) && html`<p class="limit">${LIMIT}</p>`}<//>`,
    )}
    <${Doubts} flags=${shared_flags} title="What raises doubt about the page" />
    <${Reading} result=${result} accuracy=${accuracy} isReachable=${isReachable} />
    ${marks?.reading && html`<${Mark} title="Changed">${marks.reading}<//>`}
    ${children}
  </article>`
}

/** Said once on a card, for one claim or several. */
const LIMIT = 'This is what the page says. Whether the page is right is not checked.'

/** Whether a reader could take the verdict for the truth. */
const isSaying = ({ claim_support }: CardClaim) => ['supports', 'contradicts', 'mixed'].includes(claim_support)

interface ClaimProps {
  id: string
  claim: CardClaim
  isProved: boolean
  differs: boolean
  isReachable: boolean
  /** Then each quote that does not hold is marked. */
  isChanged: boolean
  verdictMark: string | undefined
  readingMark: string | undefined
  /** What follows its header. */
  outcome: Html
  /** What its header ends with. */
  children?: Html
}

/** One claim with its verdict. */
function Claim(props: ClaimProps): Html {
  const {
    id,
    claim: one,
    isProved,
    differs,
    isReachable,
    isChanged,
    verdictMark,
    readingMark,
    outcome,
    children,
  } = props
  const { claim, claim_as_read, claim_support, head, explanation, risk_flags } = one
  const passages = passagesOf(one)
  const known = Object.hasOwn(VERDICT_WORDS, claim_support) ? claim_support : 'unknown'
  return html`<section class=${`claim verdict-${known}`} aria-labelledby=${id}>
    <header>
      ${!isProved && html`<p class="kicker">The file says, which is not proved:</p>`}
      ${differs && html`<p class="kicker">Signed, but not the same when made again:</p>`}
      <h2 id=${id} tabindex="-1"><span class="sign" aria-hidden="true">${SIGNS[known]}</span>${head}</h2>
      ${verdictMark && html`<${Mark} title="Not a verdict of this service">${verdictMark}<//>`}
      <p class="claimed"><span class="label">Claim:</span> <bdi>“${claim}”</bdi></p>
      ${claim_as_read !== undefined && html`<p class="limit">With the buyer’s context, which says what the claim refers to, it was read as <bdi>“${claim_as_read}”</bdi></p>`}
      ${readingMark && html`<${Mark} title="Not how it was read">${readingMark}<//>`}
      ${children}
    </header>
    ${outcome}
    <p class="explanation"><bdi>${explanation}</bdi></p>
    ${passages.length === 0 && html`<p class="detail">Nothing on the page was quoted for it.</p>`}
    ${passages.map(
      (passage, n) =>
        html`<${PassageView} key=${n} ...${passage} link=${isReachable ? passage.link : null} fault=${isChanged ? passage.fault : null} isJudged=${claim_support !== 'not_assessed'} />`,
    )}
    <${Doubts} flags=${risk_flags} title="What raises doubt" />
  </section>`
}

/** Beside the colour, for readers who do not tell colours apart. */
const SIGNS: Readonly<Record<string, string>> = {
  supports: '✓',
  contradicts: '✕',
  mixed: '±',
  insufficient_evidence: '?',
  not_assessed: '“',
  unknown: '·',
}

function Doubts({ flags, title }: { flags: readonly string[]; title: string }): Html {
  if (flags.length === 0) return null
  return html`<div class="doubts"><h3>${title}</h3>
    <ul>${flags.map((flag) => html`<li key=${flag}>${flagInWords(flag)} <code>${flag}</code></li>`)}</ul></div>`
}

function Reading({
  result,
  accuracy,
  isReachable,
}: {
  result: CardResult
  accuracy: string | null
  isReachable: boolean
}): Html {
  const { source, checked_at, reused_after } = result
  const { words, name } = assessorOf(result)
  const page = isReachable ? webAddress(source.final_url) : null
  const often = name?.startsWith('literal-') ? 'How often it finds the passage' : 'How often it is right'
  return html`<p class="reading">Read <${Time} ms=${Date.parse(checked_at)} /> from ${
    page
      ? html`<a class="address" href=${page} rel="noreferrer noopener" target="_blank">${source.final_url}</a>`
      : source.final_url
  }${reused_after !== null && `, kept, and used again ${counted(reused_after, 'second')} later without another visit`}; ${words}${name && html` (<code>${name}</code>)`}. ${name?.startsWith(FRESH_VERDICTS.procedure) && reliedOn(result)}${
    accuracy
      ? html`<a href=${accuracy}>${often}</a>`
      : html`The page <code>/accuracy</code> of the service says ${often.toLowerCase()}.`
  }</p>`
}

const SIDES = ['supports', 'contradicts'] as const
const SIDE_WORDS = { supports: 'for a claim', contradicts: 'against a claim' } as const

/**
 * How far to rely on a verdict about a page that the verifier does not know, and, where an explanation has a higher figure, why that one
 * is higher: the explanation is signed and cannot say it. A card without such a verdict has the figures of both sides.
 */
function reliedOn({ claims }: CardResult): string {
  const given = SIDES.filter((side) => claims.some(({ claim_support }) => claim_support === side))
  const sides = given.length > 0 ? given : SIDES
  const counts = sides.map((side) => {
    const { right, of } = FRESH_VERDICTS[side]
    return `${right} of its ${of} verdicts ${SIDE_WORDS[side]}`
  })
  const shares = sides.map((side) => `${FRESH_VERDICTS[side].low} to ${FRESH_VERDICTS[side].high}`)
  const range = `with so few, the true ${shares.length > 1 ? 'shares are' : 'share is'} likely ${shares.join(' and ')} of 100`
  const rely = `For a page that the verifier has not seen, rely on this: on public sets that had no part in making it, ${counts.join(' and ')} were right; ${range}. `
  return given.length > 0 ? rely + WHY_HIGHER : rely
}

const WHY_HIGHER =
  'The explanation’s higher figure is of held-back pages and claims of the kind that it learnt from, half of which also set how sure it must be. '
