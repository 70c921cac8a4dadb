// The layout that all public pages share, as rules: one left edge, one measure for running text, one scale of type, nothing wider than its
// window, paper without navigation, and a keyboard that reaches every control and shows where it is.
import type { Page } from 'playwright-core'
import t from 'tap'
import { findAccuracy, findOthers } from '../../server/pages/accuracy/accuracy.ts'
import { accuracyPage } from '../../server/pages/accuracy/accuracy-page.ts'
import { openSite } from '../../server/pages/layout.ts'
import { LOCAL_PROCEDURE } from '../../workers/assessment/procedure.ts'
import { type Browser, noBrowser, sharedBrowser, visit } from '../browser.ts'
import { LONG } from '../long.ts'
import { startSystem } from '../system.ts'

/** Of the root, in CSS pixels. */
const EM = 16
/** Sizes of type in rem, as tokens.css has them: for wide windows, and where headings are smaller. */
const SCALE = [0.75, 0.875, 1, 1.125, 1.375]
const HEADINGS = { 1920: [2, 2.75], 1440: [2, 2.75], 360: [1.625, 1.75] } as const
const MEASURE = 44 * EM

/** Runs in the page, and asks for each path once. */
function keepTexts({ served, drawn }: { served: string[]; drawn: Readonly<Record<string, string>> }) {
  const ask = async (path: string) => (await fetch(path, { headers: { accept: 'text/html' } })).text()
  const kept = globalThis as typeof globalThis & { texts?: Map<string, Promise<string>> }
  const texts = Object.entries(drawn).map(([path, text]) => [path, Promise.resolve(text)] as const)
  kept.texts = new Map([...served.map((path) => [path, ask(path)] as const), ...texts])
}

/** Runs in the page, which shows each path in turn without its scripts. One line for each fault. */
async function faultsOf({ paths, sizes, measure }: { paths: string[]; sizes: number[]; measure: number }) {
  const kept = globalThis as typeof globalThis & { texts: Map<string, Promise<string>> }
  const found: string[] = []
  const isNarrow = innerWidth < 640
  const pen = document.createElement('canvas').getContext('2d')
  const widthOf = (text: string, font: string) => {
    if (pen) pen.font = font
    return pen?.measureText(text).width ?? 0
  }
  /** A cell has room for eight figures, or for its whole text, and the name of its column is not cut within a word. */
  const cutCells = (table: Element) =>
    [...table.querySelectorAll<HTMLElement>(':is(tbody th, td):not(:empty)')].flatMap((cell) => {
      const { paddingLeft, paddingRight, font } = getComputedStyle(cell)
      const room = cell.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight) + 1
      const text = cell.textContent?.trim() ?? ''
      const name = getComputedStyle(cell, '::before')
      const words =
        name.content.startsWith('"') && name.float !== 'none' ? name.content.slice(1, -1).split(/[\s-]/) : []
      const cut = words.find((word) => widthOf(word, name.font) > Number.parseFloat(name.width) + 1)
      const isCramped = room < widthOf('0'.repeat(8), font) && room < widthOf(text, font)
      return [cut && `a name of a column is cut: ${cut}`, isCramped && `a cell is ${room} wide: ${text}`]
    })
  for (const path of paths) {
    const { body } = new DOMParser().parseFromString((await kept.texts.get(path)) ?? '', 'text/html')
    document.body.replaceWith(body)
    const screens = document.documentElement.scrollHeight / 800
    if (isNarrow && screens > 12) found.push(`${path}: ${screens} screens`)
    for (const details of body.querySelectorAll('details')) details.open = true
    const edge = body.querySelector('main')?.getBoundingClientRect().left ?? 0
    for (const part of ['.brand', 'main > *', 'main h1', 'footer li', 'body > .mode']) {
      const [first] = [...body.querySelectorAll(part)].filter((one) => one.checkVisibility())
      // Beside a way through the pages, the text has the second column.
      const isBeside = part === 'main h1' && body.querySelector('.beside') !== null
      const left = first?.getBoundingClientRect().left ?? Number.NaN
      if (!isBeside && Math.abs(left - edge) > 1) found.push(`${path}: ${part} begins at ${left}, not at ${edge}`)
    }
    const { scrollWidth, clientWidth } = document.documentElement
    if (scrollWidth > clientWidth) found.push(`${path}: the page is ${scrollWidth} wide`)
    for (const table of isNarrow ? body.querySelectorAll('.table') : []) {
      if (table.scrollWidth > table.clientWidth)
        found.push(`${path}: a table scrolls: ${table.textContent?.slice(0, 80)}`)
      const [cut] = cutCells(table).filter(Boolean)
      if (cut) found.push(`${path}: ${cut}`)
    }
    const other = new Map<string, string>()
    for (const element of body.querySelectorAll<HTMLElement>('*')) {
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.nodeValue?.trim())
      if (!hasText || /^(script|style|noscript|option)$/i.test(element.tagName)) continue
      const size = Number.parseFloat(getComputedStyle(element).fontSize)
      if (!sizes.some((one) => Math.abs(one - size) < 0.05)) other.set(`${size} px`, element.outerHTML.slice(0, 80))
      if (element.matches('main p:not(.live-line, .empty)') && element.getBoundingClientRect().width > measure + 1)
        other.set('wider than the measure', element.outerHTML.slice(0, 80))
    }
    for (const [what, where] of other) found.push(`${path}: ${what}: ${where}`)
  }
  return found
}

/** @param drawn pages by the path that they are reported under, which the service does not show as it runs here */
async function walk(browser: Browser, origin: string, served: string[], drawn: Readonly<Record<string, string>>) {
  const found: string[] = []
  await using opened = await visit(browser, new URL('/pricing', origin).href, { bypassCSP: true })
  const paths = [...served, ...Object.keys(drawn)]
  await opened.page.evaluate(keepTexts, { served, drawn })
  for (const width of [1920, 1440, 360] as const) {
    await opened.page.setViewportSize({ width, height: 900 })
    const sizes = [...SCALE, ...HEADINGS[width]].map((size) => size * EM)
    const lines = await opened.page.evaluate(faultsOf, { paths, sizes, measure: MEASURE })
    found.push(...lines.map((line) => `${width} pixels: ${line}`))
  }
  return found
}

t.test('the layout of every public page', { skip: noBrowser }, async (t) => {
  await using system = await startSystem({ env: { OFFLINE_PUBLIC: 'true' } })
  const browser = await sharedBrowser()
  const listed = [...(await (await fetch(system.url('/sitemap.xml'))).text()).matchAll(/<loc>([^<]+)<\/loc>/g)]
  const all = listed.map(([, url = '']) => new URL(url).pathname)
  t.ok(all.length > 80, `${all.length} pages`)
  // Operations look alike, and so do documents: one of eight, and every one in the long run.
  const paths = all.filter(
    (path, n) => LONG || !/^\/(docs|guide)\//.test(path) || n % 8 === 0 || WITH_TABLES.includes(path),
  )
  const others = [
    '/nothing',
    '/receipts?q=nothing',
    '/samples/museum-hours',
    '/checkout/nothing',
    '/results/1',
    '/account',
  ]

  await t.test('one left edge, one measure, one scale of type, and no page wider than its window', async (t) => {
    const accuracy = accuracyPage(
      await openSite({ baseUrl: system.service.address }),
      await findAccuracy(),
      { assessment: 'local', methodologies: [`text-1 ${LOCAL_PROCEDURE}+gate-3`] },
      await findOthers(),
    )
    const drawn = { '/accuracy of the local verifier': accuracy }
    t.same(await walk(browser, system.service.address, [...paths, ...others], drawn), [])
  })

  await t.test('networks are named in words', async (t) => {
    for (const path of [...all.filter((one) => !one.startsWith('/docs/')), ...others]) {
      const page = await (await fetch(system.url(path), { headers: { accept: 'text/html' } })).text()
      const text = page.replaceAll(/<(pre|code)\b[\s\S]*?<\/\1>/g, '')
      t.equal(/.{0,40}(eip155|solana):\w+/.exec(text)?.[0], undefined, path)
    }
  })

  await t.test('paper has no navigation, and the content as on the screen', async (t) => {
    await using opened = await visit(browser, 'about:blank')
    const { page } = opened
    for (const path of ['/', '/guide/buying', '/docs/verify_source', '/pricing']) {
      await page.goto(system.url(path))
      await page.emulateMedia({ media: 'print' })
      const printed = await page.evaluate((parts) => {
        const seen = (part: string) => [...document.querySelectorAll(part)].filter(isPrinted)
        const isPrinted = (one: Element) => {
          const { width, height } = one.getBoundingClientRect()
          return width * height > 0 && one.checkVisibility({ visibilityProperty: true })
        }
        return [...parts, 'main h1'].filter((part) => seen(part).length > 0)
      }, NAVIGATION)
      t.same(printed, ['main h1'], path)
    }
  })

  await t.test('the keyboard reaches every control, and shows where it is', async (t) => {
    await using opened = await visit(browser, 'about:blank')
    for (const path of ['/', '/pricing', '/verify', '/account', '/docs/register']) {
      await opened.page.goto(system.url(path))
      t.same(await unreached(opened.page), [], path)
    }
  })
})

/** Documents and operations with the widest tables. */
const WITH_TABLES = ['/guide/accuracy', '/guide/architecture', '/guide/trust', '/docs/buy_source', '/docs/get_request']

/** What paper has no use for. */
const NAVIGATION = ['header nav a:not(.brand)', 'body > footer', '.side', '.actions', '.copy']

/** The controls that the key Tab does not reach, or whose focus is not seen. */
async function unreached(page: Page): Promise<string[]> {
  const count = await page.evaluate(() => {
    const controls = [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary')]
    const seen = controls.filter((one) => one.checkVisibility() && !one.matches(':disabled'))
    for (const [n, one] of seen.entries()) one.dataset.control = String(n)
    const kept = globalThis as typeof globalThis & { stops?: Stop[] }
    kept.stops = []
    // The page keeps each stop by itself: to ask it after each key takes longer than the key.
    document.addEventListener('focusin', ({ target }) => {
      const one = target as HTMLElement
      const { outlineStyle, outlineWidth } = getComputedStyle(one)
      const { width, height, right, bottom } = one.getBoundingClientRect()
      const isSeen = outlineStyle !== 'none' && outlineWidth !== '0px' && width * height > 0 && right > 0 && bottom > 0
      kept.stops?.push({ control: one.dataset.control, isSeen, text: one.outerHTML.slice(0, 80) })
    })
    return seen.length
  })
  const faults = new Set<string>()
  const reached = new Set<string>()
  // Parts that scroll can be reached too, so there are more stops than controls.
  for (let pressed = 0; pressed < 2 * count + 20 && reached.size < count; ) {
    for (const end = pressed + count - reached.size; pressed < end; pressed++) await page.keyboard.press('Tab')
    const stops = await page.evaluate(() => (globalThis as typeof globalThis & { stops?: Stop[] }).stops ?? [])
    for (const { control, isSeen, text } of stops) {
      if (control === undefined) continue
      reached.add(control)
      if (!isSeen) faults.add(`not seen: ${text}`)
    }
  }
  if (reached.size < count) faults.add(`${count - reached.size} of ${count} controls are not reached`)
  return [...faults]
}

/** What the key Tab came to. */
interface Stop {
  /** Number of the control; none for a part that scrolls. */
  control: string | undefined
  isSeen: boolean
  text: string
}
