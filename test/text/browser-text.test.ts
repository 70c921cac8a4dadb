import t from 'tap'
import { Lines } from '../../workers/text/page/lines.ts'
import { addVisibleText } from '../../workers/text/page/visible-text.ts'
import { noBrowser, sharedBrowser, visit } from '../browser.ts'
import { elementsWithWord, shadowPages } from './foreign-elements.ts'
import { shownPages } from './shown-pages.ts'

function visible(html: string) {
  const lines = new Lines()
  addVisibleText(html, lines, { length: 0 }, { length: 0 })
  return lines.toString()
}

const names = [...new Set(shownPages.map(({ name }) => name))]
const ofName = (name: string) => shownPages.filter((page) => page.name === name)

for (const name of names) {
  t.test(`the text of pages: ${name}`, async (t) => {
    for (const { html, text } of ofName(name)) t.equal(visible(html), text, html)
  })
}

t.test('Chromium shows the same', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using view = await visit(browser, 'about:blank', { viewport: { width: 1280, height: 720 } })
  const { page } = view
  await page.route('**/*', (route) => route.abort())
  for (const name of names) {
    await t.test(name, async (t) => {
      const pages = ofName(name)
      const seen = await page.evaluate(
        seenOf,
        pages.map(({ html }) => html),
      )
      for (const [i, { html, text }] of pages.entries()) t.equal(plain(seen[i] ?? ''), text, html)
    })
  }
})

t.test('of every element Chromium shows what is read of it', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using view = await visit(browser, 'about:blank')
  const { page } = view
  await page.route('**/*', (route) => route.abort())
  const seen = await page.evaluate(seenOf, elementsWithWord)
  t.equal(seen.length, elementsWithWord.length)
  for (const [i, html] of elementsWithWord.entries())
    t.equal(visible(html).includes('WORD'), seen[i]?.includes('WORD'), html)
})

t.test('of an element with a shadow tree the tree is read, and what has a slot there', async (t) => {
  for (const [html, text] of shadowPages) t.equal(visible(`<!doctype html>${html}`).replace(/\s/g, ''), text, html)
})

t.test('Chromium shows the same of shadow trees', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using view = await visit(browser, 'about:blank')
  const { page } = view
  for (const [html, text] of shadowPages) {
    // Only a document that is loaded has them.
    await page.goto(`data:text/html,${encodeURIComponent(`<!doctype html>${html}`)}`)
    t.equal(await page.evaluate(SHOWN), text, html)
  }
})

/** Runs in the page: the text of each document as it is seen. They are written by the page itself, because to ask it for each takes longer. */
async function seenOf(documents: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const html of documents) {
    document.open()
    document.write(html)
    document.close()
    if (document.readyState !== 'complete')
      await new Promise((resolve) => window.addEventListener('load', resolve, { once: true }))
    // What stands in for a thing that cannot be loaded is in the second frame.
    if (document.querySelector('object, embed, img, iframe, video, audio'))
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen is what is meant
    found.push(document.body.innerText)
  }
  return found
}

/** Runs in the page: the characters of the flat tree that are visible. */
const SHOWN = `(() => {
  const inside = (node) => node.shadowRoot?.childNodes ?? (node.assignedNodes?.().length ? node.assignedNodes() : node.childNodes)
  const shown = (node, visible) => node.nodeType === 3
    ? (visible ? node.data : '')
    : [...inside(node)].map((child) => shown(child, 'style' in node && node.localName !== 'style' ? node.localName === 'slot' ? visible : node.checkVisibility({ visibilityProperty: true }) : visible && node.localName !== 'style')).join('')
  return shown(document.body, true).replace(/\\s/g, '')
})()`

/** The text has spaces for all blanks, nothing for U+200B, and no blank at its end. */
const plain = (shown: string) =>
  shown
    .replace(/[\u00a0\u2003\u3000]/g, ' ')
    .replaceAll('\u200b', '')
    .trimEnd()
