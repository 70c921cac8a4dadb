// The way at the side of the guide and of the reference, in a window of 1440 by 900: the entry of the page is in sight without a script.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { findExamples } from '../../server/pages/examples/examples.ts'
import { findDocuments } from '../../server/pages/guide/documents.ts'
import { guidePage } from '../../server/pages/guide/guide-page.ts'
import { openSite } from '../../server/pages/layout.ts'
import { operationPage } from '../../server/pages/reference/reference-page.ts'
import { noBrowser, sharedBrowser } from '../browser.ts'

t.test('the entry of each page is in sight at its side', { skip: noBrowser }, async (t) => {
  const site = await openSite({ baseUrl: 'https://service.test' })
  const [documents, examples] = [await findDocuments(), await findExamples()]
  const document = buildDocument({ config: readConfig({}) }, catalog)
  const pages = [
    ...Array.from(documents.values(), (one) => guidePage(site, documents, one)),
    ...catalog.map(({ name }) => operationPage(site, { document, catalog, examples, canTry: false }, name) ?? ''),
  ]
  const context = await (await sharedBrowser()).newContext({ viewport: { width: 1440, height: 900 } })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.setContent('<!doctype html><html><body></body></html>')
  await page.addStyleTag({ content: String(site.assets.style.body) })
  const hidden = await page.evaluate((texts) => {
    const found: string[] = []
    for (const text of texts) {
      const { body } = new DOMParser().parseFromString(text, 'text/html')
      window.document.body.replaceWith(body)
      const side = body.querySelector('.side')
      const entry = side?.querySelector('[aria-current]')
      if (!side || !entry) continue
      // Where a browser does not know scroll-initial-target.
      side.scrollTop = 0
      const [frame, at] = [side.getBoundingClientRect(), entry.getBoundingClientRect()]
      if (at.height === 0 || at.bottom > Math.min(frame.bottom, innerHeight)) found.push(entry.textContent ?? '')
    }
    return found
  }, pages)
  t.same(hidden, [])
})

t.test('a time is not cut at its hyphens, also in a narrow cell', { skip: noBrowser }, async (t) => {
  const site = await openSite({ baseUrl: 'https://service.test' })
  const context = await (await sharedBrowser()).newContext({ viewport: { width: 360, height: 740 } })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.setContent('<p style="width: 3rem"><time>2026-11-27</time> and so on</p>')
  await page.addStyleTag({ content: String(site.assets.style.body) })
  t.equal(await page.evaluate(() => document.querySelector('time')?.getClientRects().length), 1)
})
