// What a free look shows, on the server and in the browser: its progress by stages, its answer as the card of every result, or why
// there is none.

import { type Html, html } from '../html.ts'
import { Notice } from '../parts.ts'
import { cardOf } from '../result/card-result.ts'
import { ResultCard } from '../result/result-card.ts'
import type { LookState } from './look-call.ts'

export interface LookAbout {
  claim: string
  /** The `methodology_version` of the service. */
  methodology: string
  /** What a verification costs, in USDC. */
  price: string
}

export function LookView({ state, about }: { state: LookState; about: LookAbout }): Html {
  if (state.kind === 'stage') return html`<${Progress} stage=${state.stage} />`
  if (state.kind === 'failed') return html`<${Failure} ...${state} />`
  const { claim, methodology, price } = about
  const result = cardOf({ ...state.answer, claim, methodology_version: methodology })
  if (!result) return html`<${Failure} code="unexpected_response" message="The answer cannot be read." retryable />`
  return html`<${ResultCard} result=${result} accuracy="/accuracy">
    <div class="proof"><h3>Nothing was signed</h3>
      <p>This look was free, and proves nothing to others. A verification for ${price} USDC is the same answer with a signed receipt
        in a public chain, which anyone can check later. <a href="/guide/buying">How to buy one</a></p></div>
  <//>`
}

const STAGES = [
  ['waiting', 'Waiting for its turn'],
  ['reading', 'Reading the page'],
  ['assessing', 'Comparing it with the claim'],
] as const

function Progress({ stage }: { stage: string }): Html {
  const at = STAGES.findIndex(([name]) => name === stage)
  return html`<div class="progress-card">
    <p role="status"><strong>${STAGES[at]?.[1] ?? 'Working'}</strong></p>
    <ol>${STAGES.map(([name, words], n) => {
      const mark = n < at ? 'done' : n === at ? 'now' : undefined
      return html`<li key=${name} class=${mark} aria-current=${mark === 'now' ? 'step' : undefined}>${words}</li>`
    })}</ol>
  </div>`
}

type Failed = Extract<LookState, { kind: 'failed' }>

/** What to do about an error, by its code. */
const ADVICE: Readonly<Record<string, string>> = {
  source_blocked: 'Only public pages with an address that begins with https:// are read. Name another page.',
  source_login_required: 'Name a page that everybody can read.',
  source_needs_script: 'The page is empty without its scripts, which are not run. Name another page.',
  source_unsupported_type: 'Name another page.',
  daily_limit: 'A verification that is paid for has no such limit.',
  // Its message says it.
  processing: '',
}

function adviceOn({ code, retryable }: Failed): string {
  const known = ADVICE[code]
  if (known !== undefined) return known
  if (retryable) return 'The same may get an answer a little later: press “Check it” again.'
  return code.startsWith('source_') ? 'Asked again, this page ends in the same way. Name another page.' : ''
}

function Failure(failed: Failed): Html {
  return html`<${Notice} title="There is no answer.">${failed.message} ${adviceOn(failed)}<//>`
}
