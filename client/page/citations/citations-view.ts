// The citations of a report or the quotes of a check, each with its finding, its passage on the page, and what was computed again in
// this frame.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Html, html } from '../html.ts'
import { Badge, Facts, inFigures, type Tone, toneClass } from '../parts.ts'
import { around, webAddress } from '../result/passages.ts'
import type { Citation, Cited, LookedFor, PageText } from './cited.ts'
import { type DigestedText, digestText, type Proof, proveQuote } from './quote-proof.ts'

export interface CitationsProps {
  cited: Cited
  /** Reads a text through the host. Rejects where the host cannot. */
  readText(uri: string): Promise<string>
}

export function CitationsView({ cited, readText }: CitationsProps): Html {
  const { citations, outcome, holds, facts } = cited
  const { texts, isBusy } = usePageTexts(cited.texts, readText)
  const proofs = useMemo(
    () => new Map(citations.flatMap(({ quotes }) => quotes).map((quote) => [quote, prove(quote, texts)])),
    [citations, texts],
  )
  const [more, setMore] = useState(1)
  const shown = citations.slice(0, more * AT_ONCE)
  const all = [...proofs.values()]
  const isRefuted = all.some(({ state }) => state === 'refuted')
  return html`<section class="report" aria-labelledby="standing" aria-busy=${isBusy}>
    <header class=${`standing ${toneClass(holds && !isRefuted ? 'good' : 'bad')}`}>
      <p class="kind">${cited.kind === 'quotes' ? 'This is a check of quotes.' : 'This is a check of a report.'}</p>
      <h2 id="standing" tabindex="-1">${outcome}</h2>
      <p role="status">${isBusy ? 'The texts of the pages are being read.' : sumOfProofs(all)}</p>
    </header>
    <${Facts} facts=${facts} />
    <ol class="citations">${shown.map(
      (citation, index) =>
        html`<${CitationView} key=${index} citation=${citation} kind=${cited.kind} texts=${texts} proofs=${proofs} />`,
    )}</ol>
    ${
      shown.length < citations.length &&
      html`<p><button type="button" class="quiet" onClick=${() => setMore(more + 1)}>Show more
        (${inFigures(citations.length - shown.length)} left)</button></p>`
    }
    <p class="aside">${LIMITS}</p>
  </section>`
}

/** A long report is drawn in steps. */
const AT_ONCE = 50

const LIMITS =
  'The service read the pages, and nothing here is signed. The digests and places were computed in this frame, from the text that the ' +
  'service read. A link opens the page as it is today.'

function sumOfProofs(proofs: readonly Proof[]): string {
  const count = (state: Proof['state']) => proofs.filter((proof) => proof.state === state).length
  const [proved, refuted] = [count('proved'), count('refuted')]
  if (refuted > 0)
    return `What the check says of ${inFigures(refuted)} of ${inFigures(proofs.length)} quotes is not so.`
  if (proofs.length === 0) return 'There was no quotation to prove.'
  if (proved === proofs.length)
    return `What the check says of ${proved === 1 ? 'the quote' : `all ${inFigures(proved)} quotes`} was proved in this frame.`
  return `${inFigures(proved)} of ${inFigures(proofs.length)} quotes were proved in this frame: the host brought no text for the others.`
}

/** The texts by the digest under which they were announced. A text that the host does not read is left out. */
function usePageTexts(given: readonly PageText[], readText: CitationsProps['readText']) {
  const [read, setRead] = useState<{ of: object; texts: ReadonlyMap<string, DigestedText> }>()
  useEffect(() => {
    let isCurrent = true
    const readAll = async () => {
      const texts = new Map<string, DigestedText>()
      for (const { text_sha256, uri, text } of given) {
        const brought = typeof text === 'string' ? text : await readText(uri).catch(() => null)
        if (!isCurrent) return
        if (brought !== null) texts.set(text_sha256, digestText(brought))
      }
      setRead({ of: given, texts })
    }
    readAll()
    return () => {
      isCurrent = false
    }
  }, [given])
  const isRead = read?.of === given
  return { texts: isRead ? read.texts : NO_TEXTS, isBusy: !isRead }
}

type Texts = ReadonlyMap<string, DigestedText>
const NO_TEXTS: Texts = new Map()

const prove = (quote: LookedFor, texts: Texts) => proveQuote(quote, texts.get(quote.text_sha256) ?? null)

interface CitationProps {
  citation: Citation
  kind: Cited['kind']
  texts: Texts
  proofs: ReadonlyMap<LookedFor, Proof>
}

function CitationView({ citation, kind, texts, proofs }: CitationProps): Html {
  const { finding, tone, says, line, url, message, quotes } = citation
  const address = webAddress(url)
  return html`<li>
    <p><${Badge} tone=${tone}>${finding}<//> ${kind === 'quotes' || quotes.length > 0 ? html`<q><bdi>${says}</bdi></q>` : html`<bdi>${says}</bdi>`}</p>
    ${message && html`<p class="detail">${message}</p>`}
    ${
      kind === 'report' &&
      html`<p class="detail">Line ${line} · ${
        address === null ? url : html`<a href=${address} rel="noreferrer noopener" target="_blank">${url}</a>`
      }</p>`
    }
    ${quotes.map((quote, index) => {
      const proof = proofs.get(quote)
      const text = texts.get(quote.text_sha256) ?? null
      return proof && html`<${QuoteView} key=${index} quote=${quote} proof=${proof} text=${text} />`
    })}
  </li>`
}

function proofWords({ match }: LookedFor, { state }: Proof): string {
  if (state === 'refuted') return 'Not so'
  if (state === 'open') return 'No text to prove it by'
  return match === 'exact' || match === 'typographic' ? 'Proved in this frame' : 'Absence proved in this frame'
}

const PROOF_TONES: Record<Proof['state'], Tone> = { proved: 'proved', refuted: 'refuted', open: 'open' }

function QuoteView({ quote, proof, text }: { quote: LookedFor; proof: Proof; text: DigestedText | null }): Html {
  const { start, end } = quote.nearest ?? quote
  const passage = text && start !== null && end !== null && end > start ? around(text.points, start, end) : null
  const link = quote.fragment_url && webAddress(quote.fragment_url)
  return html`<figure class="passage">
    ${
      passage &&
      html`<blockquote>${passage.before}<mark>${text?.points.slice(start ?? 0, end ?? 0).join('')}</mark>${passage.after}</blockquote>`
    }
    <figcaption><${Badge} tone=${PROOF_TONES[proof.state]}>${proofWords(quote, proof)}<//>${
      link &&
      html` · <a href=${link} rel="noreferrer noopener" target="_blank">${
        quote.nearest ? 'Open the similar passage on the live page' : 'Open the quote on the live page'
      }</a>`
    }
    <details class="checks">
      <summary>What was computed</summary>
      <ol>${proof.steps.map(
        ({ ok, words }) => html`<li key=${words} class=${ok ? 'passed' : 'failed'}>
          <p class="bytes-line">${!ok && html`<${Badge} tone="refuted">Differs<//> `}${words}</p>
        </li>`,
      )}</ol>
    </details></figcaption>
  </figure>`
}
