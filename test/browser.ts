// Opens pages in headless Chromium: records the requests of a page, what its content policy refuses, what axe finds, and,
// if requested, pictures of it in .tap/pages/.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type axe from 'axe-core'
import {
  type Browser,
  type BrowserContextOptions,
  type CDPSession,
  type ConsoleMessage,
  chromium,
  type Frame,
  type Page,
  type Request,
  type Response,
} from 'playwright-core'
import type { Test } from 'tap'
import { endings } from './endings.ts'
import { LONG } from './long.ts'

export type { Browser }

/** Debian's, Fedora's and Google's. */
const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = process.env.CHROMIUM ?? PROGRAMS.find((path) => existsSync(path))

/** For the option `skip` of a test: why there is no browser, or false. */
export const noBrowser: string | false = program
  ? false
  : `no Chromium at ${PROGRAMS.join(', ')}; name one in CHROMIUM to run the tests of pages`

let browser: Promise<Browser> | undefined

/** The browser of all files of this process, which is closed after the last one: its first page costs more than three later ones. */
export function sharedBrowser(): Promise<Browser> {
  browser ??= launch()
  return browser
}

/**
 * Parts of Chromium that are off. It takes one list of them, so those that Playwright turns off are named again. The last three are
 * processes that each new window would start besides its own: two menus of an address bar that no window shows, and a spare one.
 * They take half of the processor time of a visit.
 */
const OFF = [
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
  'SpareRendererForSitePerProcess',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxPopup',
]

async function launch(): Promise<Browser> {
  // The tests run as root in containers, where Chromium has no sandbox.
  const args = ['--no-sandbox', `--disable-features=${OFF.join()}`]
  // Playwright would end this process at a signal, and some files send themselves one.
  const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }
  const launched = await chromium.launch({ executablePath: program, args, ...signals })
  endings.defer(() => launched.close())
  return launched
}

const WIDE = { width: 1440, height: 900 }

export interface Visit extends AsyncDisposable {
  page: Page
  /** `method url` of each request, without those for data: URLs. */
  requests: string[]
  /** Bytes over the network, headers included. */
  transferred(): number
  /** What the page wrote to the console, errors of scripts, and what the policy refused. */
  complaints: string[]
  /** To the request for the page itself. */
  answer: Response | null
}

export interface VisitOptions extends BrowserContextOptions {
  viewport?: { width: number; height: number }
  /** For what cannot be taken back, such as another clock, or a function for the scripts of the page: the window is closed, not emptied. */
  isSpent?: boolean
}

/** A window with nothing of the windows before. Its size is 1440 by 900 pixels unless the options say another one. */
export async function visit(browser: Browser, url: string, options: VisitOptions = {}): Promise<Visit> {
  const { viewport = WIDE, colorScheme = 'light', isSpent, ...fixed } = options
  const kind = JSON.stringify(fixed)
  const page = emptied.get(kind)?.pop() ?? (await (await browser.newContext(fixed)).newPage())
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme })
  const requests: string[] = []
  const complaints: string[] = []
  let bytes = 0
  const listeners = {
    request: (request: Request) => {
      if (!request.url().startsWith('data:')) requests.push(`${request.method()} ${request.url()}`)
    },
    pageerror: (error: Error) => void complaints.push(error.message),
    console: (message: ConsoleMessage) => void (isWritten(message) && complaints.push(message.text())),
  }
  page.on('request', listeners.request).on('pageerror', listeners.pageerror).on('console', listeners.console)
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  const answer = await page.goto(url)
  const leave = async () => {
    if (isSpent) return page.context().close()
    page.off('request', listeners.request).off('pageerror', listeners.pageerror).off('console', listeners.console)
    await empty(page, session)
    emptied.set(kind, [...(emptied.get(kind) ?? []), page])
  }
  return { page, requests, complaints, answer, transferred: () => bytes, [Symbol.asyncDispose]: leave }
}

/** Windows that were visited, by what cannot be changed of them. To empty one takes half of the processor time of a new one. */
const emptied = new Map<string, Page[]>()

/** As a new window is: without stores, caches, routes and other windows beside it. */
async function empty(page: Page, session: CDPSession): Promise<void> {
  const context = page.context()
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await context.unrouteAll({ behavior: 'ignoreErrors' })
  for (const other of context.pages()) if (other !== page) await other.close()
  await page.goto('about:blank')
  await session.send('Network.clearBrowserCache')
  await session.send('Network.clearBrowserCookies')
  await session.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' })
  await session.detach()
  await page.emulateMedia({ media: null })
}

/** What a program wrote there, not what the browser advises, nor what the stock package for chat hosts notes of each message. */
const isWritten = (message: ConsoleMessage) =>
  /^(log|info|warning|error)$/.test(message.type()) &&
  !message.text().startsWith('An iframe which has both allow-scripts and allow-same-origin')

/** Axe without its comments: it is read by every page anew, which takes longer than to run it. */
const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))
let axeSource: string | undefined

/** Its rules with their impact, which its types do not have. */
type AxeWithRules = typeof axe & { _audit: { rules: { id: string; enabled: boolean; impact: string }[] } }

/**
 * Serious and critical findings of axe, one line each. The other rules take a third of its time, so only the long run makes them, and its
 * findings are of all rules.
 */
export async function seriousFindings(page: Page | Frame): Promise<string[]> {
  axeSource ??= readFileSync(AXE, 'utf8')
  // It stays until the page is left.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource)
  const violations = await page.evaluate(async (all) => {
    const { axe } = globalThis as unknown as { axe: AxeWithRules }
    const rules = axe._audit.rules.filter(
      ({ enabled, impact }) => enabled && (all || /^(serious|critical)$/.test(impact)),
    )
    const found = await axe.run({ runOnly: rules.map(({ id }) => id), resultTypes: ['violations'] })
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`)
  }, LONG)
  return violations
}

/**
 * Stores a picture of the whole page, or of the visible part, for people to look at: with `--pictures` and in the long run.
 * It is compared with nothing, and takes as long as a check by axe.
 */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  if (!LONG && process.env.TEST_PICTURES !== '1') return
  const folder = join(import.meta.dirname, '../.tap/pages')
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage })
}

/** By how many pixels the page is wider than its window. */
export function overflow(page: Page | Frame): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}

/** The windows in which pages must reflow, in CSS pixels: 1440 and 1280 pixels at 200 % zoom, and the 320 of WCAG 1.4.10. */
const ZOOMED = [
  [720, 450],
  [640, 512],
  [320, 640],
] as const

/** One page of twenty, of each kind; every page in the long run. */
const sampleOf = (paths: readonly string[]) => paths.filter((_, n) => LONG || n % 20 === 0)

/**
 * What does not fit where pages are zoomed in or narrow, one line each: a page that is wider than its window, and text that is cut off
 * where it cannot be scrolled. And what axe finds there, on some pages; on each in the long run. Parts that scroll by themselves, such
 * as tables and code, may be wider.
 *
 * All pages have one style, so each is put into the window of the first one, which takes a tenth of the time of a visit. Their scripts
 * do not run.
 */
export async function findMisfits(browser: Browser, origin: string, paths: readonly string[]): Promise<string[]> {
  await using opened = await visit(browser, new URL(paths[0] ?? '/', origin).href, { bypassCSP: true })
  const found: string[] = []
  for (const [width, height] of ZOOMED) {
    await opened.page.setViewportSize({ width, height })
    // At 640 pixels the style is that of 320, so what fits there fits here.
    const lines = await opened.page.evaluate(misfitsOf, width === 640 ? sampleOf(paths) : paths)
    found.push(...lines.map((line) => `${width} pixels: ${line}`))
  }
  // A check by axe takes longer than all else here, and the pages of one kind have the same parts.
  for (const path of sampleOf(paths)) {
    await opened.page.evaluate(misfitsOf, [path])
    found.push(...(await seriousFindings(opened.page)).map((line) => `${path}: ${line}`))
  }
  return found
}

/** Runs in the page. */
async function misfitsOf(paths: readonly string[]): Promise<string[]> {
  const found: string[] = []
  // A page is asked for once, not for each window.
  const kept = globalThis as typeof globalThis & { texts?: Map<string, Promise<string>> }
  kept.texts ??= new Map(
    paths.map((path) => [path, fetch(path, { headers: { accept: 'text/html' } }).then((answer) => answer.text())]),
  )
  for (const path of paths) {
    const { body } = new DOMParser().parseFromString((await kept.texts.get(path)) ?? '', 'text/html')
    if (!body.querySelector('main')) found.push(`${path}: no page`)
    document.body.replaceWith(body)
    const { scrollWidth, clientWidth } = document.documentElement
    if (scrollWidth > clientWidth) found.push(`${path}: the page is ${scrollWidth} wide`)
    // The name of its column is not shown there.
    const alone = [...body.querySelectorAll('.stacks tbody td:only-of-type')]
    if (alone.some((cell) => parseFloat(getComputedStyle(cell).paddingInlineStart) > 32))
      found.push(`${path}: a cell that is alone beside its name leaves room for another`)
    for (const element of body.querySelectorAll<HTMLElement>('*')) {
      // Fields scroll with the caret; what is for screen readers alone is one pixel wide.
      if (element.scrollWidth <= element.clientWidth + 1 || element.clientWidth <= 1) continue
      if (/^(input|textarea|select)$/i.test(element.tagName)) continue
      if (/hidden|clip/.test(getComputedStyle(element).overflowX))
        found.push(`${path}: cut off: ${element.outerHTML.slice(0, 100)}`)
    }
  }
  return found
}

/** The text of a part of the page as it is seen: what is hidden is not in it. */
export function shown(page: Page | Frame, selector: string): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen is what is meant
  return page.innerText(selector)
}

export interface InspectOptions {
  /** Most bytes over the network. */
  weight?: number
  /** For a page of many screens: its pictures show the first one, and axe looks at it once. */
  isLong?: boolean
}

/**
 * Checks what holds for every page that is made on the server: axe finds nothing in light and dark, the page fits 360
 * pixels, its policy refuses nothing, it calls no other host, it transfers less than 100 KB, and has the same text without
 * JavaScript. May store two pictures. Returns the text.
 */
export async function inspect(
  t: Test,
  browser: Browser,
  url: string,
  name: string,
  { weight = 100_000, isLong = false }: InspectOptions = {},
): Promise<string> {
  await using opened = await visit(browser, url)
  const { page, requests, complaints, transferred, answer } = opened
  const policy = (await answer?.allHeaders())?.['content-security-policy']
  t.match(
    policy,
    /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; /,
  )
  t.same(await seriousFindings(page), [], `${name}: light`)
  t.ok(transferred() < weight, `${name}: ${transferred()} bytes`)
  await picture(page, `${name}-1440-light`, !isLong)
  await page.setViewportSize({ width: 360, height: 740 })
  await page.emulateMedia({ colorScheme: 'dark' })
  t.equal(await overflow(page), 0, `${name}: 360 pixels`)
  if (!isLong) t.same(await seriousFindings(page), [], `${name}: dark`)
  await picture(page, `${name}-360-dark`, !isLong)
  const { host } = new URL(url)
  t.same(
    requests.filter((line) => new URL(line.split(' ')[1] ?? '').host !== host),
    [],
    `${name}: no other host`,
  )
  t.same(complaints, [], `${name}: the policy holds`)
  const drawn = await lasting(page)
  t.equal(drawn, answer && (await lastingWithoutScripts(page, answer)), `${name}: the same without JavaScript`)
  await page.setViewportSize(WIDE)
  await page.emulateMedia({ colorScheme: 'light' })
  // Awaited, because the window closes at the end of this function.
  return await shown(page, 'main')
}

/**
 * The same text where the page is shown anew as in a window that was opened without JavaScript, in a third of the time of such a window:
 * from the same answer, because the service may have changed meanwhile.
 */
async function lastingWithoutScripts(page: Page, answer: Response): Promise<string> {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setScriptExecutionDisabled', { value: true })
  const known = await sameAs(answer)
  await page.route(answer.url(), (route) => route.fulfill(known))
  await page.reload()
  if (!(await page.evaluate(() => matchMedia('(scripting: none)').matches))) throw new Error('scripts still run')
  const text = await lasting(page)
  await session.send('Emulation.setScriptExecutionDisabled', { value: false })
  await session.detach()
  return text
}

async function sameAs(answer: Response) {
  const headers = await answer.allHeaders()
  // The browser has decoded the body.
  delete headers['content-encoding']
  delete headers['content-length']
  return { status: answer.status(), headers, body: await answer.body() }
}

/** The text of the content without what scripts add, and without times. */
function lasting(page: Page): Promise<string> {
  return page.locator('main').evaluate((main) => {
    const copy = main.cloneNode(true) as HTMLElement
    for (const element of copy.querySelectorAll('.copy, search, [role=status], time')) element.remove()
    return (copy.textContent ?? '').replace(/\s+/g, '')
  })
}
