// The quotes of a result, each in its passage, and in the whole text of the page with a way from one to the next.
import { useMemo, useRef, useState } from 'preact/hooks'
import { type Html, html } from './html.ts'
import { Badge } from './parts.ts'
import { type Part, type Passage, partsOf, passagesOf, quotedIn } from './passages.ts'

export function QuotesView({ value }: { value: unknown }): Html {
  const quoted = useMemo(() => quotedIn(value), [value])
  const passages = useMemo(() => (quoted ? passagesOf(quoted) : []), [quoted])
  const parts = useMemo(() => (quoted ? partsOf(quoted) : []), [quoted])
  if (!quoted) return null
  return html`<section aria-labelledby="quotes">
    <h3 id="quotes">What the page said</h3>
    ${passages.length === 0 && html`<p>The result quotes nothing.</p>`}
    ${passages.map((passage) => html`<${PassageView} key=${passage.id} ...${passage} />`)}
    <${WholeText} parts=${parts} ids=${passages.map(({ id }) => id)} />
  </section>`
}

/** One quote in its passage. */
export function PassageView({ id, stance, before, quote, after, link }: Passage): Html {
  return html`<figure class="passage">
    <figcaption><${Badge}>${id}<//> ${STANCES[stance] ?? stance}${
      link && html` · <a href=${link} rel="noreferrer noopener" target="_blank">Open the quote on the live page</a>`
    }</figcaption>
    <blockquote>${before}<mark>${quote}</mark>${after}</blockquote>
  </figure>`
}

const STANCES: Record<string, string> = {
  supports: 'speaks for the claim',
  contradicts: 'speaks against the claim',
  mentions: 'mentions the claim',
}

function WholeText({ parts, ids }: { parts: readonly Part[]; ids: readonly string[] }): Html {
  const [at, setAt] = useState(-1)
  const box = useRef<HTMLDivElement>(null)
  const go = (step: number) => {
    const next = (Math.max(at, step > 0 ? -1 : 0) + step + ids.length) % ids.length
    setAt(next)
    const mark = box.current?.querySelector<HTMLElement>(`[data-quote~="${CSS.escape(ids[next] ?? '')}"]`)
    mark?.scrollIntoView({ block: 'center' })
  }
  const current = ids[at]
  return html`<details class="whole-text">
    <summary>The whole text of the page as it was read</summary>
    ${
      ids.length > 0 &&
      html`<p class="steps">
        <button type="button" class="quiet" onClick=${() => go(-1)}>Previous quote</button>
        <button type="button" class="quiet" onClick=${() => go(1)}>Next quote</button>
        <span role="status">${current ? `${current}, ${at + 1} of ${ids.length}` : `${ids.length} quotes`}</span>
      </p>`
    }
    <div class="text" tabindex="0" role="region" aria-label="Text of the page" ref=${box}>${parts.map(
      ({ text, ids: within }, index) =>
        within.length === 0
          ? text
          : html`<mark key=${index} data-quote=${within.join(' ')} class=${current && within.includes(current) ? 'current' : ''}>${text}</mark>`,
    )}</div>
  </details>`
}
