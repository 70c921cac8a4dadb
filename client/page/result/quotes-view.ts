// The quotes of a result: each in its passage, and in the whole text of the page with a way from one to the next.
import { useMemo, useRef, useState } from 'preact/hooks'
import { stanceInWords } from '../../verdict-words.ts'
import { type Html, html } from '../html.ts'
import { Badge } from '../parts.ts'
import { type Passage, partsOf, type Quoted } from './passages.ts'

/** What a check found wrong with a part of a card, beside that part. */
export function Mark({ title, children }: { title: string; children?: Html }): Html {
  return html`<p class="mark"><${Badge} tone="refuted">${title}<//>${' '}${children}</p>`
}

/**
 * One quote in its passage, with its stance and a link that opens the page at it. What is wrong with it is said, if it is not proved.
 * @param isJudged something judged the claim, and not its words alone were compared
 */
export function PassageView({ isJudged, ...passage }: Passage & { isJudged: boolean }): Html {
  const { id, stance, before, quote, after, link, fault } = passage
  return html`<figure class=${`passage stance-${STANCES.includes(stance) ? stance : 'unknown'}`}>
    <blockquote>${before}<mark>${quote}</mark>${after}</blockquote>
    <figcaption><span class="stance">${isJudged ? stanceInWords(stance) : COMPARED}</span> <span class="detail">quote ${id}</span>${
      link && html` <a href=${link} rel="noreferrer noopener" target="_blank">Open the page at this quote</a>`
    }</figcaption>
    ${fault?.kind === 'misquoted' && html`<${Mark} title="Not the text that was read">The file quotes here <bdi>“${fault.quote}”</bdi>, ${fault.there ? 'and its text says what is marked above' : 'and its text has no such place'}.<//>`}
    ${fault?.kind === 'foreign' && html`<${Mark} title="Not from this text">The quote names the fingerprint of another text.<//>`}
  </figure>`
}

const COMPARED = 'shares words with the claim; nothing was judged'

const STANCES = ['supports', 'contradicts', 'mentions']

/** The text of the page as it was read, folded, with its quotes marked. Needs a script to go from one to the next. */
export function WholeText({ source, evidence, mark }: Quoted & { mark?: string | undefined }): Html {
  const parts = useMemo(() => partsOf({ source, evidence }), [source, evidence])
  const ids = evidence.map(({ evidence_id }) => String(evidence_id))
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
    <summary>${mark ? 'The whole text of the page, which was changed' : 'The whole text of the page as it was read'}</summary>
    ${mark && html`<${Mark} title="Not the text that was read">${mark}<//>`}
    ${
      ids.length > 0 &&
      html`<p class="steps">
        <button type="button" class="quiet" onClick=${() => go(-1)}>Previous quote</button>
        <button type="button" class="quiet" onClick=${() => go(1)}>Next quote</button>
        <span role="status">${current ? `${current}, ${at + 1} of ${ids.length}` : `${ids.length} ${ids.length === 1 ? 'quote' : 'quotes'}`}</span>
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
