// Opens pages of MCP Apps in a browser, in a frame of the stock host (chat-host.ts), which sets a policy as hosts set it.
import { join } from 'node:path'
import type { Frame, Page } from 'playwright-core'
import { loadBundler } from '../../client/page/build.ts'
import { type Browser, picture, shown, type Visit, visit } from '../browser.ts'
import type { HostOptions } from './chat-host.ts'

export type OpenedFrame = Visit & { frame: Frame }

export interface ChatHosts extends AsyncDisposable {
  /** The page in a frame of a new host. Its window is dark where the theme is light, so that the theme decides. */
  open(html: string, options?: Partial<HostOptions>): Promise<OpenedFrame>
}

/** Where hosts put the page of a server that names no domain. */
const SANDBOX = 'https://sandbox.chat-host.test/'

/** As MCP Apps tells hosts to build it from empty lists of domains. */
const HOST_POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "media-src 'self' data:; font-src 'self'; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'"

/** @param readResource asks the server, as a host does for its pages */
export async function openChatHosts(
  browser: Browser,
  readResource: (uri: string) => Promise<unknown>,
): Promise<ChatHosts> {
  const { build, stop } = await loadBundler()
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'chat-host.ts')],
    bundle: true,
    write: false,
    format: 'iife',
    logLevel: 'silent',
  })
  await stop()
  const script = outputFiles[0]?.text ?? ''
  const opened = new AsyncDisposableStack()
  return {
    async open(html, options = {}) {
      const visited = opened.use(
        await visit(browser, 'about:blank', {
          colorScheme: options.theme === 'dark' ? 'light' : 'dark',
          isSpent: true,
        }),
      )
      const { page, requests } = visited
      await page.route(SANDBOX, (route) =>
        route.fulfill({ contentType: 'text/html', headers: { 'content-security-policy': HOST_POLICY }, body: html }),
      )
      await page.exposeFunction('readResource', readResource)
      await page.addScriptTag({ content: script })
      await page.evaluate(([url, given]) => window.openHost(url, given), [
        SANDBOX,
        { theme: 'light', reads: true, ...options },
      ] as const)
      const [, frame] = page.frames()
      if (!frame) throw new Error('the host has no frame')
      // The host's own request for the page.
      requests.length = 0
      return { ...visited, frame, [Symbol.asyncDispose]: () => visited[Symbol.asyncDispose]() }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Hands the page a call and its answer, and returns what it shows. */
export async function draw(
  { page, frame }: Pick<OpenedFrame, 'page' | 'frame'>,
  given: Record<string, unknown>,
  answer: unknown,
): Promise<string> {
  await page.evaluate((given) => window.host.call(given), given)
  await frame.waitForSelector('text=No result yet.')
  await page.evaluate((answer) => window.host.answer(answer), answer)
  await frame.locator(':not([aria-busy=true]) > header > #standing').or(frame.getByText(WORDS)).first().waitFor()
  return shown(frame, 'main')
}

/** How answers begin of which nothing is drawn. */
const WORDS = /^(There is no result to draw|The check is not finished|Nothing was checked)\./

/** A picture of the frame in a window that is as high as it: Chromium does not draw what lies below the window in time. */
export async function portray(page: Page, frame: Frame, name: string, width: number) {
  await page.setViewportSize({ width, height: 2500 })
  await fits(frame)
  await page.setViewportSize({ width, height: await frame.evaluate(() => innerHeight) })
  await fits(frame)
  await picture(page, `chat-${name}-${width}`, false)
}

/** Waits until the frame is as high as its page, no less and no more, and drawn. */
export async function fits(frame: Frame) {
  await frame.evaluate(
    () =>
      new Promise<void>((resolve) => {
        const check = () => {
          const { height } = document.querySelector('main')?.getBoundingClientRect() ?? { height: 0 }
          if (height > 0 && Math.abs(innerHeight - height) <= 1) requestAnimationFrame(() => resolve())
          else requestAnimationFrame(check)
        }
        check()
      }),
  )
}
