// How much room pages take, with their scripts: of many pages in one window, because a visit of each takes ten times as long.
import { type Browser, visit } from '../browser.ts'

export interface Room {
  path: string
  /** Its height in windows of the size at hand. */
  screens: number
  /** Of the body in the form that sends a call, how many pixels are out of view; null without such a form. */
  hidden: number | null
}

/**
 * In windows of each size. All pages have one style: each is put into the window of the first one, and is asked for once.
 */
export async function findRoom(
  browser: Browser,
  origin: string,
  paths: readonly string[],
  sizes: readonly { width: number; height: number }[],
): Promise<Room[][]> {
  await using opened = await visit(browser, new URL(paths[0] ?? '/', origin).href, { bypassCSP: true })
  const found: Room[][] = []
  for (const size of sizes) {
    await opened.page.setViewportSize(size)
    found.push(await opened.page.evaluate(measure, paths))
  }
  return found
}

/** Runs in the page. */
async function measure(paths: readonly string[]): Promise<Room[]> {
  const run = (path: string) => {
    const script = document.createElement('script')
    script.src = path
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    script.addEventListener('load', resolve)
    script.addEventListener('error', reject)
    document.head.append(script)
    return promise
  }
  const ask = async (path: string) => (await fetch(path, { headers: { accept: 'text/html' } })).text()
  const kept = globalThis as typeof globalThis & { texts?: Map<string, string> }
  kept.texts ??= new Map()
  const found: Room[] = []
  for (const path of paths) {
    const text = kept.texts.get(path) ?? (await ask(path))
    kept.texts.set(path, text)
    const fresh = new DOMParser().parseFromString(text, 'text/html')
    const scripts = [...fresh.querySelectorAll('script[src]')].map((one) => one.getAttribute('src') ?? '')
    document.body.replaceWith(fresh.body)
    for (const script of scripts) await run(script)
    const body = document.querySelector<HTMLTextAreaElement>('.try-call textarea')
    found.push({
      path,
      screens: document.documentElement.scrollHeight / innerHeight,
      hidden: body && body.scrollHeight - body.clientHeight,
    })
  }
  return found
}
