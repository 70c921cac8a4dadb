// Pages for people and for language models load nothing from other hosts.
import { load } from 'cheerio'
import t, { type Test } from 'tap'
import { startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

/** The attributes that a browser fetches. */
const ASSETS = 'script[src], link[href][rel!="canonical"], img[src], iframe[src], source[src], video[src], object[data]'

/** Fetches a page and all that it loads; returns the texts by path. */
async function browse(t: Test, path: string): Promise<Map<string, string>> {
  const page = await fetch(system.url(path))
  t.equal(page.status, 200, path)
  t.match(page.headers.get('content-type'), /^text\/html/)
  const html = await page.text()
  const texts = new Map([[path, html]])
  const $ = load(html)
  const named = $(ASSETS)
    .toArray()
    .map((element) => $(element).attr('src') ?? $(element).attr('href') ?? $(element).attr('data') ?? '')
  for (const name of named) {
    if (name.startsWith('data:')) continue
    const url = new URL(name, page.url)
    t.equal(url.origin, new URL(system.service.address).origin, `${name} is from here`)
    const asset = await fetch(url)
    t.equal(asset.status, 200, name)
    texts.set(url.pathname, await asset.text())
  }
  return texts
}

/** Addresses that a style or an inline script would load from other hosts. */
const OUTSIDE = /(@import|url\()\s*["']?(https?:)?\/\/|\b(fetch|import)\(\s*["'](https?:)?\/\//

t.test('/docs loads from this host only', async (t) => {
  const texts = await browse(t, '/docs')
  t.ok(texts.size > 1, 'the page loads something')
  const [[, html = ''] = []] = texts
  t.notMatch(html, OUTSIDE)
  for (const [path, text] of texts) if (path.endsWith('.css')) t.notMatch(text, OUTSIDE, path)
})

t.test('the home page loads from this host only', async (t) => {
  const texts = await browse(t, '/')
  t.notMatch([...texts.values()].join('\n'), OUTSIDE)
})

t.test('/llms.txt explains to a language model how to buy', async (t) => {
  const response = await fetch(system.url('/llms.txt'))
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/(plain|markdown)/)
  const text = await response.text()
  t.match(text, /^# \S/, 'begins with a title, as llmstxt.org requires')
  t.match(text, /\n> \S/, 'and a summary')
  for (const word of ['Idempotency-Key', 'PAYMENT-SIGNATURE', 'X-Service-Recovery-Token', '0.03', 'x402', '402', '202'])
    t.ok(text.includes(word), word)
  const { paths } = await (await fetch(system.url('/openapi.json'))).json()
  const named = [...text.matchAll(/(POST|PUT|GET) (?:http:\/\/[^/]+)?(\/v1\/[\w/{}-]+)/g)]
  t.ok(named.length >= 8, 'it describes the control toolkit too')
  for (const [call, method = '', path = ''] of named) t.ok(paths[path]?.[method.toLowerCase()], call)
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => String(link))
  t.ok(links.length > 0)
  for (const link of links) {
    t.ok(link.startsWith(system.service.address), link)
    t.equal((await fetch(link)).status, 200, link)
  }
  t.ok(text.includes(system.url('/api/agent/v1/verify-source')))
  t.ok(text.includes('/api/agent/v1/buy'), 'the door for stock clients')
})
