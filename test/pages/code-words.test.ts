// Code among words in a narrow window: an option or a short word of code stays on one line, a long one wraps, and no page is too wide.
import type { Page } from 'playwright-core'
import t from 'tap'
import { noBrowser, overflow, sharedBrowser, visit } from '../browser.ts'
import { LONG } from '../long.ts'
import { startSystem } from '../system.ts'

/** With many options and names; every page of the guide and the reference in the long run. */
const PATHS = [
  '/guide/buying',
  '/guide/check',
  '/guide/client',
  '/guide/auditing',
  '/guide/configuration',
  '/guide/operations',
  '/docs',
  '/docs/errors',
  '/docs/verify_source',
  '/docs/get_receipt',
  '/docs/put_citation_watch',
  '/docs/get_evidence',
]

/** The words of code that are on two lines, though they are an option or short. */
function brokenWords(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    for (const one of document.querySelectorAll('details')) one.open = true
    const found: string[] = []
    for (const code of document.querySelectorAll('main code:not(pre code)')) {
      const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
      for (let text = texts.nextNode(); text; text = texts.nextNode())
        for (const { 0: word, index } of (text.nodeValue ?? '').matchAll(/\S+/g)) {
          if (!/^--[\w-]{1,24}$/.test(word) && word.length > 18) continue
          const range = document.createRange()
          range.setStart(text, index)
          range.setEnd(text, index + word.length)
          const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
          if (lines.size > 1) found.push(`${word} of ${code.textContent?.slice(0, 60)}`)
        }
    }
    return found
  })
}

t.test('in a narrow window', { skip: noBrowser }, async (t) => {
  await using system = await startSystem()
  const listed = [...(await (await fetch(system.url('/sitemap.xml'))).text()).matchAll(/<loc>([^<]+)<\/loc>/g)]
  const all = listed.map(([, url = '']) => new URL(url).pathname).filter((path) => /^\/(docs|guide)/.test(path))
  await using opened = await visit(await sharedBrowser(), 'about:blank', { viewport: { width: 360, height: 740 } })
  const { page } = opened
  const long: string[] = []
  for (const path of LONG ? all : PATHS) {
    await page.goto(system.url(path))
    t.same(await brokenWords(page), [], path)
    t.equal(await overflow(page), 0, `${path} is as wide as its window`)
    const wrapped = await page
      .locator('main code:not(pre code)')
      .evaluateAll((codes) =>
        codes.filter((one) => one.getClientRects().length > 1).map((one) => one.textContent ?? ''),
      )
    long.push(...wrapped)
  }
  t.ok(
    long.some((text) => text.length > 40),
    'long ones wrap',
  )
})
