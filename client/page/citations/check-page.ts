// The page that `countersign check --html` writes, in the browser: the outcome of a check as cards, one for each citation. What it shows
// stands in the page; it asks for nothing else.
import { type ComponentChildren, render } from 'preact'
import type { Status } from '../../report/judgement.ts'
import { type Html, html } from '../html.ts'
import { Badge, Facts, toneClass } from '../parts.ts'
import { type CardResult, cardOf } from '../result/card-result.ts'
import { webAddress } from '../result/passages.ts'
import { ResultCard } from '../result/result-card.ts'
import { type Citation, readCited } from './cited.ts'

/** What the command puts into the page. */
export interface ShownCheck {
  /** As `--format json` writes it. */
  check: {
    file: string
    service: string
    verdicts: { spent_usd: string; folder: string | null } | null
    citations: {
      status: Status
      parts: { nearest: { text: string } | null }[]
      verdict: { receipt_serial: number } | null
    }[]
  }
  /** For each citation the result that its verdict is from, without the text of its page. */
  results: ({ source: { text_sha256: string } } | null)[]
  /** The texts of the pages, by their digests: several results are about one page. */
  texts: Readonly<Record<string, string>>
}

/** What the author of the report does next, by the finding. Nothing where the citation holds. */
const NEXT: Readonly<Record<Status, string>> = {
  ok: '',
  typographic: '',
  supported: '',
  contradicted: 'Read the quote on its page, then correct the sentence, or cite another page for it.',
  mixed:
    'Read the quotes on both sides. Say in the sentence what the page says for and against it, or cite a page that is clear.',
  unsupported: 'Find another source that says it, or take the sentence out.',
  wrong: 'Compare the words with the page, then correct the quotation, or cite the page that has it.',
  dead: 'Open the page yourself. If it is gone, cite another page, or a copy in an archive.',
  moved: 'Open the new address, and put it into the report.',
  unverified: 'Open the page and read whether it says so, or let the service judge it: countersign check --verify.',
  unreadable: 'Open the page yourself and look for it there, or try again later.',
  unchecked: 'This says nothing for or against the citation. Try again later; what was found already is kept.',
}

function Next({ status }: { status: Status | undefined }): Html {
  const next = status && NEXT[status]
  return next ? html`<p class="next"><strong>Next:</strong> ${next}</p>` : null
}

function CheckPage({ check, results, texts }: ShownCheck): Html {
  const cited = readCited(check, undefined)
  if (!cited) return html`<p class="problem">The outcome in this page cannot be read.</p>`
  const { service, verdicts } = check
  return html`<section class="report" aria-labelledby="standing">
    <header class=${`standing ${toneClass(cited.holds ? 'good' : 'bad')}`}>
      <p class="kind">This is a check of ${check.file}.</p>
      <h2 id="standing">${cited.outcome}</h2>
    </header>
    <${Facts} facts=${[
      ...cited.facts,
      ['Service', html`<a href=${service} rel="noreferrer noopener" target="_blank">${service}</a>`],
      ['Spent on verdicts', verdicts && `${verdicts.spent_usd} USDC`],
    ]} />
    <ol class="citations">${cited.citations.map((citation, n) => {
      const result = results[n]
      const text = result && texts[result.source.text_sha256]
      const card = result && cardOf({ ...result, source: { ...result.source, normalized_text: text } })
      return html`<li key=${n}>${
        card
          ? html`<${Judged} id=${`verdict-${n + 1}`} citation=${citation} card=${card} status=${check.citations[n]?.status} serial=${check.citations[n]?.verdict?.receipt_serial} check=${check} />`
          : html`<${Looked} citation=${citation} status=${check.citations[n]?.status} nearest=${check.citations[n]?.parts ?? []} />`
      }</li>`
    })}</ol>
    <p class="aside">A citation holds where its page has the quoted words, or says what the report says of it. Whether the page itself is
      right was not checked. A link opens the page as it is today.</p>
  </section>`
}

interface JudgedProps {
  id: string
  citation: Citation
  card: CardResult
  status: Status | undefined
  serial: number | undefined
  check: ShownCheck['check']
}

/** A citation with a verdict: the card of every result. */
function Judged({ id, citation, card, status, serial, check }: JudgedProps): Html {
  const { service, verdicts } = check
  return html`<p class="detail">Line ${citation.line}</p>
    <${Next} status=${status} />
    <${ResultCard} id=${id} result=${card} accuracy=${new URL('accuracy', service).href}>
      <div class="proof"><h3>How to prove it</h3>
        <p>Its receipt is <a href=${new URL(`receipts/${serial}`, service).href} rel="noreferrer noopener" target="_blank">number ${serial} of the public
          chain</a>. This page is a copy and proves nothing by itself:${' '}<code>countersign verify</code> checks the signed
          result${verdicts?.folder && html`, which is kept in <code>${verdicts.folder}</code>`}.</p></div>
    <//>`
}

/** A citation that was only looked for on its page. */
function Looked({
  citation,
  status,
  nearest,
}: {
  citation: Citation
  status: Status | undefined
  nearest: { nearest: { text: string } | null }[]
}): Html {
  const { finding, tone, says, line, url, message } = citation
  const address = webAddress(url)
  return html`<article class="looked">
    <p><${Badge} tone=${tone}>${finding}<//> <bdi>${says}</bdi></p>
    ${message && html`<p>${message}</p>`}
    ${nearest.map((part, n) => part.nearest && html`<blockquote key=${n}><p class="detail">The page says:</p><p><bdi>${part.nearest.text}</bdi></p></blockquote>`)}
    <${Next} status=${status} />
    <p class="detail">Line ${line} · ${address === null ? url : html`<a class="address" href=${address} rel="noreferrer noopener" target="_blank">${url}</a>`}</p>
  </article>`
}

const place = document.getElementById('check')
if (place) render(html`<${CheckPage} ...${JSON.parse(place.dataset.check ?? 'null')} />` as ComponentChildren, place)
