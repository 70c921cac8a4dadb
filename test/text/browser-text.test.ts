import t from 'tap'
import { Lines } from '../../workers/text/page/lines.ts'
import { addVisibleText } from '../../workers/text/page/visible-text.ts'
import { noBrowser, sharedBrowser, visit } from '../browser.ts'
import { elementsWithWord } from './foreign-elements.ts'
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
      for (const { html, text } of ofName(name)) {
        await page.setContent(html, { waitUntil: 'load' })
        t.equal(plain(await page.evaluate('document.body.innerText')), text, html)
      }
    })
  }
})

t.test('of every element Chromium shows what is read of it', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using view = await visit(browser, 'about:blank')
  const { page } = view
  await page.route('**/*', (route) => route.abort())
  for (const html of elementsWithWord) {
    await page.setContent(html, { waitUntil: 'load' })
    const shown = String(await page.evaluate('document.body.innerText'))
    t.equal(visible(html).includes('WORD'), shown.includes('WORD'), html)
  }
})

/** The text has spaces for all blanks, nothing for U+200B, and no blank at its end. */
const plain = (shown: string) =>
  shown
    .replace(/[\u00a0\u2003\u3000]/g, ' ')
    .replaceAll('\u200b', '')
    .trimEnd()
