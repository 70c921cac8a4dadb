// A minimal chat host in a browser, made with the stock package: shows a page of MCP Apps in a sandboxed frame, and sends
// it the data of a test. Runs in the page of the test, which bundles it.
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

export interface HostOptions {
  theme: 'light' | 'dark'
  /** The host reads resources for the page, with the function `readResource` of its window. */
  reads: boolean
}

export interface Host {
  call(args: Record<string, unknown>): Promise<void>
  answer(result: unknown): Promise<void>
  cancel(reason: string): Promise<void>
  setTheme(theme: 'light' | 'dark'): void
  /** Links that the page asked to have opened. */
  opened: string[]
}

declare global {
  interface Window {
    host: Host
    /** @param url of the page, at an origin of its own */
    openHost(url: string, options: HostOptions): Promise<void>
    readResource(uri: string): Promise<never>
  }
}

window.openHost = async (url, { theme, reads }) => {
  document.body.style.margin = '0'
  const frame = document.createElement('iframe')
  frame.title = 'App'
  // As hosts have it: the page is at an origin of its own, which keeps it from the host.
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms')
  frame.style.cssText = 'width: 100%; height: 60px; border: 0; display: block'
  document.body.replaceChildren(frame)
  const info = { name: 'a test', version: '1.0.0' }
  const can = { openLinks: {}, ...(reads && { serverResources: {} }) }
  const bridge = new AppBridge(null, info, can, { hostContext: { theme } })
  const opened: string[] = []
  bridge.onopenlink = async ({ url }) => {
    opened.push(url)
    return {}
  }
  bridge.onsizechange = ({ height }) => {
    if (height !== undefined) frame.style.height = `${height}px`
  }
  if (reads) bridge.onreadresource = ({ uri }) => window.readResource(uri)
  const initialized = new Promise<void>((resolve) => {
    bridge.oninitialized = () => resolve()
  })
  const inner = frame.contentWindow as Window
  await bridge.connect(new PostMessageTransport(inner, inner))
  frame.src = url
  await initialized
  window.host = {
    opened,
    call: (args) => bridge.sendToolInput({ arguments: args }),
    answer: (result) => bridge.sendToolResult(result as Parameters<typeof bridge.sendToolResult>[0]),
    cancel: (reason) => bridge.sendToolCancelled({ reason }),
    setTheme: (next) => bridge.setHostContext({ theme: next }),
  }
}
