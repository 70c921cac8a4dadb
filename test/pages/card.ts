// What the card of a result shows wherever it is drawn, as rules that each place tests: the front page, /try, /results, /verify, chat
// hosts, and the page of a check.
import type { Frame, Page } from 'playwright-core'
import { flagInWords } from '../../client/flag-words.ts'
import { assessorOf } from '../../client/page/result/card-result.ts'
import { FRESH_VERDICTS, headInWords, stanceInWords } from '../../client/verdict-words.ts'

/** The members of a result that its card shows. */
export interface CardOf {
  claim: string
  claim_support: string
  explanation: string
  risk_flags: readonly string[]
  evidence: readonly { quote: string; stance: string }[]
  checked_at: string
  methodology_version: string
  source: { final_url: string }
  /** An answer of a free look has none. */
  cache?: { hit: boolean; age_seconds: number }
}

interface Expected {
  head: string
  claim: string
  explanation: string
  quotes: { quote: string; stance: string }[]
  flags: string[]
  checked: number
  assessor: string[]
  /** What its reading line may not say. */
  unsaid: string[]
  /** How links to the page at a quote begin; null where the page is nowhere. */
  link: string | null
  hasProof: boolean
}

/** @param isExample its page is nowhere, and nothing was proved of it */
export function faultsOfCard(
  view: Page | Frame,
  result: CardOf,
  { nth = 0, isExample = false } = {},
): Promise<string[]> {
  const { claim, claim_support, explanation, evidence, risk_flags, checked_at, methodology_version, source } = result
  const { words, name } = assessorOf(result as unknown as Parameters<typeof assessorOf>[0])
  const isFresh = name?.startsWith(FRESH_VERDICTS.procedure)
  const sides = (['supports', 'contradicts'] as const).filter((side) => claim_support === side)
  const shown = sides.length > 0 ? sides : (['supports', 'contradicts'] as const)
  const figures = shown.flatMap((side) => {
    const { right, of, low, high } = FRESH_VERDICTS[side]
    return [`${right} of its ${of} verdicts`, `${low} to ${high}`]
  })
  const isReused = result.cache?.hit === true
  const reused = `, kept, and used again ${result.cache?.age_seconds} second`
  const expected: Expected = {
    head: headInWords({ claim_support, risk_flags, methodology_version }),
    claim,
    explanation,
    quotes: evidence.map(({ quote, stance }) => ({
      quote,
      stance: claim_support === 'not_assessed' ? 'shares words with the claim' : stanceInWords(stance),
    })),
    flags: risk_flags.map(flagInWords),
    checked: Date.parse(checked_at),
    assessor: [
      words,
      ...(name ? [name] : []),
      ...(isFresh ? ['For a page that the verifier has not seen, rely on this', ...figures, 'of 100'] : []),
      ...(isFresh && sides.length > 0 ? ['The explanation’s higher figure is of'] : []),
      ...(isReused ? [reused] : []),
    ],
    unsaid: [...(isFresh && sides.length === 0 ? ['higher figure'] : []), ...(isReused ? [] : ['used again'])],
    link: isExample ? null : `${source.final_url}#:~:text=`,
    hasProof: !isExample,
  }
  return view.locator('.result-card').nth(nth).evaluate(faultsIn, expected)
}

/** Runs in the page. One line for each fault. */
function faultsIn(card: Element, expected: Expected): string[] {
  const found: string[] = []
  const hold = (isSo: boolean, what: string) => isSo || found.push(what)
  const plain = (text: string) => text.replaceAll(/\s+/g, ' ').trim()
  const wordsOf = (one: Element | null | undefined) => plain(one?.textContent ?? '')
  const all = <E extends HTMLElement>(selector: string) => [...card.querySelectorAll<E>(selector)]
  /** Read without a press of anything. */
  const isInView = (one: Element | null | undefined): one is HTMLElement => {
    const { width = 0, height = 0 } = one?.getBoundingClientRect() ?? {}
    return (
      one?.checkVisibility({ visibilityProperty: true, opacityProperty: true }) === true &&
      !one.closest('details') &&
      width * height > 1
    )
  }
  const { head, claim, explanation, quotes, flags, checked, assessor, unsaid, link, hasProof } = expected
  const verdict = card.querySelector('h2')
  const sign = card.querySelector('.sign')
  // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen is what is meant
  const said = plain((card as HTMLElement).innerText)
  hold(isInView(verdict) && isInView(sign), 'the verdict and its sign are in view')
  hold(said.startsWith(plain(`${wordsOf(sign)} ${head}`)), `the verdict is not first: ${said.slice(0, 80)}`)
  const places = [head, claim, explanation, ...quotes.map(({ quote }) => quote)].map((part) =>
    said.indexOf(plain(part)),
  )
  hold(
    places.every((place, n) => place >= (places[n - 1] ?? 0)),
    `verdict, claim, explanation, quotes are at ${places}`,
  )
  const figures = all('figure.passage')
  hold(figures.length === quotes.length, `${figures.length} quotes of ${quotes.length}`)
  for (const [n, { quote, stance }] of quotes.entries()) {
    const figure = figures[n]
    hold(isInView(figure) && wordsOf(figure.querySelector('mark')) === plain(quote), `quote ${n + 1} is in view`)
    hold(wordsOf(figure?.querySelector('figcaption')).includes(stance), `quote ${n + 1} says: ${stance}`)
    const links = [...(figure?.querySelectorAll('a') ?? [])].filter((one) => link && one.href.startsWith(link))
    if (link) hold(isInView(links[0]), `quote ${n + 1} links to its place: ${link}`)
  }
  for (const flag of flags) {
    const items = all('.doubts li').filter((one) => wordsOf(one).includes(plain(flag)))
    hold(items.some(isInView), `in view: ${flag}`)
  }
  const reading = card.querySelector('.reading')
  const time = reading?.querySelector('time')
  hold(isInView(time) && Math.abs(Date.parse(time.dateTime) - checked) < 1000, 'when it was read')
  for (const words of assessor) hold(isInView(reading) && wordsOf(reading).includes(words), `by what: ${words}`)
  for (const words of unsaid) hold(!wordsOf(reading).includes(words), `said of another card: ${words}`)
  const accuracy = [...(reading?.querySelectorAll('a') ?? [])].find((one) => one.pathname === '/accuracy')
  hold(isInView(accuracy), 'how often that is right')

  const proof = card.querySelector<HTMLElement>('.proof')
  hold(!hasProof || proof !== null, 'what was proved')
  if (!proof) return found
  hold(proof === card.lastElementChild, 'the proof is last')
  const sizeOf = (one: Element | null) => (one ? Number.parseFloat(getComputedStyle(one).fontSize) : 0)
  const largest = Math.max(...[proof, ...proof.querySelectorAll('*')].map(sizeOf))
  hold(
    largest < Math.min(sizeOf(verdict), sizeOf(card.querySelector('.claimed'))),
    `the proof is as large as ${largest} px`,
  )
  const probe = card.appendChild(document.createElement('i'))
  const verdicts = ['supports', 'contradicts', 'good', 'bad'].flatMap((name) => [`--${name}`, `--${name}-bg`])
  const colours = verdicts.map((name) => {
    probe.style.setProperty('color', `var(${name})`)
    return getComputedStyle(probe).color
  })
  probe.remove()
  for (const one of [proof, ...proof.querySelectorAll('*')]) {
    const { color, backgroundColor } = getComputedStyle(one)
    hold(
      !colours.includes(color) && !colours.includes(backgroundColor),
      `a colour of verdicts: ${one.outerHTML.slice(0, 60)}`,
    )
  }
  return found
}
