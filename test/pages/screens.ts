// How much room pages take, with their scripts: of many pages in one window, because a visit of each takes ten times as long.
import { type Browser, visit } from '../browser.ts'

export interface Room {
  path: string
  /** Its height in windows of the size at hand. */
  screens: number
  /** Of the body in the form that sends a call, how many pixels are out of view; null without such a form. */
  hidden: number | null
}

/** All pages have one style: each is put into the window of the first one. */
export async function findRoom(
  browser: Browser,
  origin: string,
  paths: readonly string[],
  viewport: { width: number; height: number },
): Promise<Room[]> {
  await using opened = await visit(browser, new URL(paths[0] ?? '/', origin).href, { bypassCSP: true, viewport })
  // Awaited, because the window closes at the end of this function.
  return await opened.page.evaluate(measure, paths)
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
  const found: Room[] = []
  for (const path of paths) {
    const answer = await fetch(path, { headers: { accept: 'text/html' } })
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
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
