// The search of the guide and the reference. It fetches its index once, when the field is entered, and searches in the browser.
import { type ComponentChildren, render } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { type Html, html } from './html.ts'
import { wordsOf } from './search-words.ts'

/** Address, title, and further words, as `server/pages/guide/search-entries.ts` makes them. */
type Entry = readonly [path: string, title: string, words: string]

const MOST = 12

/** The entries that have all words: first those with the words in their title, then those with words that begin so. */
function find(entries: readonly Entry[], sought: string): Entry[] {
  const words = wordsOf(sought)
  if (words.length === 0) return []
  const rated = entries.flatMap((entry) => {
    const [, title, more] = entry.map((text) => text.toLowerCase().replaceAll('_', ' '))
    const score = words.reduce((sum, word) => {
      const plain = word.replaceAll('_', ' ')
      const rank = title?.includes(plain)
        ? title.startsWith(plain)
          ? 4
          : 3
        : ` ${more}`.includes(` ${plain}`)
          ? 2
          : more?.includes(plain)
            ? 1
            : Number.NEGATIVE_INFINITY
      return sum + rank
    }, 0)
    return score > 0 ? [{ entry, score }] : []
  })
  return rated.sort((a, b) => b.score - a.score).map(({ entry }) => entry)
}

function Search({ index }: { index: string }): Html {
  const [entries, setEntries] = useState<readonly Entry[] | null>(null)
  const [problem, setProblem] = useState('')
  const [sought, setSought] = useState('')
  const found = useMemo(() => find(entries ?? [], sought), [entries, sought])
  const load = async () => {
    if (entries) return
    const answer = await fetch(index).catch(() => null)
    if (answer?.ok) setEntries((await answer.json()) as Entry[])
    else setProblem('The index could not be fetched. Enter the field again to retry.')
  }
  const count =
    found.length === 0
      ? 'Nothing found.'
      : `${found.length} found${found.length > MOST ? `, the first ${MOST} are shown` : ''}.`
  return html`<search class="field">
    <label for="sought">Search the guide and the reference</label>
    <input id="sought" type="search" autocomplete="off" spellcheck=${false} value=${sought} onFocus=${load}
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setSought(currentTarget.value)} />
    <p role="status" class="detail">${problem || (sought.trim() !== '' && entries && count)}</p>
    <ul class="found">${found.slice(0, MOST).map(([path, title]) => html`<li key=${path}><a href=${path}>${title}</a></li>`)}</ul>
  </search>`
}

const place = document.getElementById('search')
if (place) render(html`<${Search} index=${place.dataset.index ?? ''} />` as ComponentChildren, place)
