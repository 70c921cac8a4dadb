// Takes the pictures of one state in every variant, and puts those of one colour scheme side by side on sheets.
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Browser, Frame, Page } from 'playwright-core'

/** A window in which a state is set up. */
export interface Scene {
  page: Page
  /** What is looked at where it is not the page itself: the frame of a chat host. */
  frame?: Frame | Page
  /** Prepares the content for a variant, beside the size and the colour scheme of the window. */
  dress?(variant: Variant): Promise<void>
  /** Of a page that was not opened for this scene. */
  complaints?: string[]
}

export interface Variant {
  name: string
  width: number
  /** Of the window; the picture is as high as the page. */
  height: number
  scheme: 'light' | 'dark'
  isPrint?: boolean
}

const SCREEN = [
  { width: 1440, height: 900 },
  { width: 360, height: 740 },
]
export const VARIANTS: readonly Variant[] = (['light', 'dark'] as const).flatMap((scheme) =>
  SCREEN.map(({ width, height }) => ({ name: `${width}-${scheme}`, width, height, scheme })),
)
/** A4 between its margins, in CSS pixels. */
export const PRINT: Variant = { name: 'print', width: 718, height: 1047, scheme: 'light', isPrint: true }

/** The highest picture; longer pages are cut into pieces. */
const PIECE = 6000

export interface Picture {
  variant: Variant
  /** Of the whole page. */
  height: number
  /** Pixels by which it is wider than its window. */
  overflow: number
  pieces: { file: string; height: number }[]
}

/** Stores the pictures of a state as `pages/NAME-VARIANT[-PIECE].png`. */
export async function photograph(scene: Scene, name: string, variant: Variant, folder: string): Promise<Picture> {
  const { page, frame = page, dress } = scene
  const { width, scheme, isPrint } = variant
  await page.setViewportSize({ width, height: variant.height })
  await page.emulateMedia({ colorScheme: scheme, media: isPrint ? 'print' : 'screen', reducedMotion: 'reduce' })
  await dress?.(variant)
  // What was pressed last would look as if the pointer were on it.
  await page.mouse.move(0, 0)
  await page.evaluate(() => scrollTo(0, 0))
  await settle(page)
  const { height, overflow } = await frame.evaluate(() => {
    const { scrollHeight, scrollWidth } = document.documentElement
    return { height: scrollHeight, overflow: scrollWidth - innerWidth }
  })
  const count = Math.ceil(height / PIECE)
  const pieces: Picture['pieces'] = []
  await mkdir(join(folder, 'pages'), { recursive: true })
  for (let n = 0; n < count; n++) {
    const file = join(folder, 'pages', `${name}-${variant.name}${count > 1 ? `-${n + 1}` : ''}.png`)
    const clip = { x: 0, y: n * PIECE, width, height: Math.min(PIECE, height - n * PIECE) }
    await page.screenshot({ path: file, fullPage: true, clip })
    pieces.push({ file, height: clip.height })
  }
  return { variant, height, overflow, pieces }
}

/** Waits for fonts and for two frames, in which what a script shows is drawn. */
async function settle(page: Page) {
  await page.evaluate(async () => {
    await document.fonts.ready
    for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame)
  })
}

/** Stores the accessibility tree as `trees/NAME.txt`. */
export async function writeTree({ page, frame = page }: Scene, name: string, folder: string) {
  await mkdir(join(folder, 'trees'), { recursive: true })
  await writeFile(join(folder, 'trees', `${name}.txt`), `${await frame.locator('body').ariaSnapshot()}\n`)
}

const GAP = 40
/** A sheet is as wide and as high as this: a wide column beside a narrow one. It is scaled to SCALED, in which it can be read. */
export const SHEET = 1440 + GAP + 360
const SCALED = 1500
const LABEL = 40
export const ROWS = SHEET - LABEL

/** A part of a picture at its place on a sheet. */
interface Part {
  picture: Picture
  from: number
  x: number
  y: number
  length: number
}

/** Cuts pictures into sheets: a column of each, side by side, then what is left of them, also below a wide one that has ended. */
export function cut(pictures: readonly Picture[]): Part[][] {
  const left = pictures.map((picture) => ({ picture, from: 0 }))
  const sheets: Part[][] = []
  while (left.some(({ picture, from }) => from < picture.height)) {
    const parts: Part[] = []
    const put = (one: (typeof left)[number], x: number, y: number) => {
      const { height, variant } = one.picture
      const length = Math.min(ROWS - y, height - one.from)
      if (length <= 0 || x + variant.width > SHEET) return 0
      parts.push({ ...one, x, y, length })
      one.from += length
      return variant.width + (variant.width > SHEET / 2 ? GAP : GAP / 4)
    }
    let x = 0
    for (const one of [...left, ...left, ...left, ...left, ...left]) x += put(one, x, 0)
    const [{ picture, length = 0 } = {}] = parts
    const below = length + GAP
    if (picture && picture.variant.width > SHEET / 2 && below < ROWS - 300)
      for (const one of left.slice(1)) for (x = 0; x < 1200; ) x += put(one, x, below) || SHEET
    sheets.push(parts)
  }
  return sheets
}

/** A page on which sheets are put together from the pictures of a folder. */
export async function openTable(browser: Browser, folder: string): Promise<Page> {
  await mkdir(join(folder, 'sheets'), { recursive: true })
  const viewport = { width: SHEET, height: SHEET }
  const page = await browser.newPage({ viewport, deviceScaleFactor: SCALED / SHEET })
  await page.route('http://sheet/*', (route) => {
    const name = decodeURIComponent(new URL(route.request().url()).pathname.slice(1))
    return route.fulfill(name === '' ? { contentType: 'text/html', body: '' } : { path: join(folder, 'pages', name) })
  })
  await page.goto('http://sheet/')
  return page
}

/** Stores the sheets of a state as `sheets/NAME[-N].png`. Returns how many there are. */
export async function arrange(page: Page, pictures: readonly Picture[], name: string, folder: string): Promise<number> {
  const sheets = cut(pictures)
  for (const [n, parts] of sheets.entries()) {
    const height = LABEL + Math.max(...parts.map(({ y, length }) => y + length))
    await page.setViewportSize({ width: SHEET, height })
    await page.setContent(drawSheet(`${name} ${n + 1} of ${sheets.length}`, parts), { waitUntil: 'load' })
    const number = sheets.length > 1 ? `-${String(n + 1).padStart(2, '0')}` : ''
    await page.screenshot({ path: join(folder, 'sheets', `${name}${number}.png`) })
  }
  return sheets.length
}

function drawSheet(title: string, parts: readonly Part[]): string {
  const drawn = parts.map(({ picture, from, x, y, length }) => {
    let top = -from
    const images = picture.pieces.flatMap(({ file, height }) => {
      const at = top
      top += height
      return at < length && top > 0 ? `<img src="/${encodeURIComponent(basename(file))}" style="top:${at}px">` : []
    })
    const place = `left:${x}px;top:${LABEL + y}px;width:${picture.variant.width}px;height:${length}px`
    return `<div style="${place}">${images.join('')}</div>`
  })
  return `<style>body{margin:0;background:#808080;font:24px/${LABEL}px sans-serif}header{background:#ffd}
    div{position:absolute;overflow:hidden}img{position:absolute;left:0}</style><header>${title}</header>${drawn.join('')}`
}
