// The calculator of /pricing: what verifications of some claims on some pages cost a month. A form that the server answers.
import { html } from '../../client/page/html.ts'
import { counted, inFigures } from '../../client/page/parts.ts'
import { MOST_CLAIMS, PRICE, priceOf } from '../interface/price.ts'

/** The numbers of the form, in its order. */
const INPUTS = [
  { name: 'claims', label: 'Claims on a page', usual: 1, most: 1000 },
  { name: 'pages', label: 'Pages', usual: 10, most: 1_000_000 },
  { name: 'checks', label: 'Checks of each page a month', usual: 30, most: 100_000 },
] as const
type InputName = (typeof INPUTS)[number]['name']

export interface Calculation {
  /** What stands in the fields: what was sent, or the usual numbers. */
  texts: Readonly<Record<InputName, string>>
  /** What is wrong with a field. */
  problems: Readonly<Partial<Record<InputName, string>>>
  /** Of a month; null where a field is wrong. */
  cost: { purchases: number; usd: string } | null
}

/** @param query the parameters of the address; unknown ones are ignored */
export function calculate(query: Readonly<Record<string, unknown>>): Calculation {
  const read = INPUTS.map(({ name, usual, most }) => {
    const sent = query[name]
    const text = typeof sent === 'string' ? sent.trim().slice(0, LONGEST) : String(usual)
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    return {
      name,
      text,
      number,
      problem: number >= 1 && number <= most ? null : `A whole number from 1 to ${inFigures(most)}.`,
    }
  })
  const problems = read.flatMap(({ name, problem }) => (problem === null ? [] : [[name, problem] as const]))
  const [claims = 0, pages = 0, checks = 0] = read.map(({ number }) => number)
  return {
    texts: Object.fromEntries(read.map(({ name, text }) => [name, text])) as Calculation['texts'],
    problems: Object.fromEntries(problems),
    cost: problems.length > 0 ? null : costOf(claims, pages * checks),
  }
}

/** Of what was sent, so much is shown again. */
const LONGEST = 20

/** Claims about one page are bought together, as many as one purchase takes. @param readings how often a page is read with its claims */
function costOf(claims: number, readings: number): Calculation['cost'] {
  const full = Math.floor(claims / MOST_CLAIMS)
  const rest = claims % MOST_CLAIMS
  const atomic = BigInt(full) * BigInt(priceOf(MOST_CLAIMS).atomic) + (rest > 0 ? BigInt(priceOf(rest).atomic) : 0n)
  const purchases = (full + (rest > 0 ? 1 : 0)) * readings
  return { purchases, usd: inUsd(atomic * BigInt(readings)) }
}

/** Whole cents, since the price is. */
function inUsd(atomic: bigint): string {
  const cents = atomic / 10n ** BigInt(PRICE.decimals - 2)
  return `${inFigures(Number(cents / 100n))}.${String(cents % 100n).padStart(2, '0')}`
}

/** Of one purchase, by what was asked for. */
function claimsInWords(claims: string | undefined): string {
  if (Number(claims) === 1) return '1 claim'
  return Number(claims) > MOST_CLAIMS ? `up to ${MOST_CLAIMS} claims` : `${claims} claims`
}

export function Calculator({ calculation: { texts, problems, cost } }: { calculation: Calculation }) {
  return html`<form class="calculator" method="get" action="/pricing" aria-labelledby="calculator">
    <h3 id="calculator">What would it cost you?</h3>
    <div class="numbers-asked">${INPUTS.map(({ name, label, most }) => {
      const problem = problems[name]
      return html`<div class="field" key=${name}>
        <label for=${name}>${label}</label>
        <input id=${name} name=${name} type="text" inputmode="numeric" value=${texts[name]} autocomplete="off" maxlength=${String(most).length}
          aria-describedby=${problem && `${name}-problem`} aria-invalid=${problem ? 'true' : undefined} />
        ${problem && html`<p id=${`${name}-problem`} class="problem">${problem}</p>`}
      </div>`
    })}</div>
    <p class="actions"><button type="submit">Calculate</button></p>
    ${
      cost &&
      html`<p class="cost"><output for=${INPUTS.map(({ name }) => name).join(' ')}><strong>${cost.usd} ${PRICE.currency}</strong> a month</output>
        <span class="detail">for ${counted(cost.purchases, 'purchase')}, each of ${claimsInWords(texts.claims)} about one page. Pages that cannot be read cost nothing.</span></p>`
    }
  </form>`
}
