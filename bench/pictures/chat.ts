// Answers in a chat host: the page of MCP Apps in a frame of the stock host.
import { sharedBrowser } from '../../test/browser.ts'
import { draw, fits, openChatHosts } from '../../test/mcp/chat-frame.ts'
import { callTool, KEY, PAYMENT, sign } from '../../test/mcp/paid-tool.ts'
import { openRawClient } from '../../test/mcp/raw-client.ts'
import type { System } from '../../test/system.ts'
import type { Scene } from './camera.ts'
import { once } from './once.ts'

const PAGE = 'ui://countersign/report'

/** What is drawn of a call and its answer; without an answer the page waits. */
type Drawn = readonly [args: Record<string, unknown>, answer?: unknown]

export async function openChat(system: System, claim: string, opened: AsyncDisposableStack) {
  const { ask, call } = openRawClient(system.url('/mcp/check'))
  const read = async (uri: string) => (await ask('resources/read', { uri })).body.result
  const hosts = opened.use(await openChatHosts(await sharedBrowser(), read))
  const [{ text: html }] = (await read(PAGE)).contents
  const args = { source_url: system.site.url('/kelby'), claim }
  const buy = once(async () => {
    const meta = { [KEY]: 'a-purchase-in-a-chat-0' }
    const { payment } = await sign(system.url('/'), { args, meta })
    return callTool(system.url('/'), { args, meta: { ...meta, [PAYMENT]: payment } })
  })
  const quotes = {
    source_url: args.source_url,
    quotes: [
      'opened in 1874 by the county',
      'THE LONGEST OF THEM',
      'was opened in 1974 by the county engineers',
      'Penguins are birds',
    ],
  }
  const markdown = `# Kelby\n\nIt says “was opened in 1874 by the county” ([history](${args.source_url})), and that “the harbour was closed in 1990
    by the navy of Denmark” ([other](${args.source_url})). “They say so in every book of theirs” ([gone](${system.site.url('/gone')})).\n`
  const calls = {
    waiting: async (): Promise<Drawn> => [args],
    bought: async (): Promise<Drawn> => [args, await buy()],
    receipt: async (): Promise<Drawn> => {
      const { receipt } = (await buy()).structuredContent as { receipt: Record<string, unknown> }
      const { attestation, canonical_envelope_base64 } = receipt
      const given = { attestation, canonical_envelope_base64 }
      return [given, await call('verify_receipt', given)]
    },
    quotes: async (): Promise<Drawn> => [quotes, await call('check_quotes', quotes)],
    report: async (): Promise<Drawn> => [{ markdown }, await call('check_report', { markdown })],
  }
  return {
    async show(name: keyof typeof calls): Promise<Scene> {
      const [given, answer] = await calls[name]()
      const host = await hosts.open(html)
      const { page, frame, complaints } = host
      if (answer) await draw(host, given, answer)
      else await page.evaluate((given) => window.host.call(given), given)
      const dress: Scene['dress'] = async ({ width, scheme }) => {
        await page.evaluate((theme) => window.host.setTheme(theme), scheme)
        await frame.waitForSelector(`html[data-theme=${scheme}]`)
        // Chromium does not draw what lies below the window in time.
        await page.setViewportSize({ width, height: 3000 })
        await fits(frame)
        await page.setViewportSize({ width, height: await frame.evaluate(() => innerHeight) })
        await fits(frame)
      }
      return { page, frame, dress, complaints }
    },
  }
}
