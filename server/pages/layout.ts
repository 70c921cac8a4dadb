// The frame of every page for people: head, navigation, footer, and the headers that restrict a page to resources of this
// host.
import { renderToString } from 'preact-render-to-string'
import type { ScriptName } from '../../client/page/build.ts'
import { type Html, html } from '../../client/page/html.ts'
import { COMMON_POLICY, WORKER_POLICY } from '../../client/page/policy.ts'
import { type Assets, openAssets } from './assets.ts'

/** What every page of a service needs. */
export interface Site {
  /** Public address of the service, without a slash at its end. */
  baseUrl: string
  assets: Assets
  /** Every page says that payments are not real. */
  offlinePublic: boolean
  /** There is a page /try. */
  canTry: boolean
}

interface SiteSettings {
  baseUrl: string
  config?: { offlinePublic: boolean; try: { enabled: boolean } }
}

/** The assets are made when the first page is asked for; a failure to make them is thrown. */
export async function openSite({ baseUrl, config }: SiteSettings): Promise<Site> {
  const offlinePublic = config?.offlinePublic ?? false
  const canTry = config?.try.enabled ?? false
  return { baseUrl: baseUrl.replace(/\/$/, ''), assets: await openAssets(), offlinePublic, canTry }
}

export interface PageParts {
  title: string
  /** The path of the page. The navigation marks the entry with this path or a parent of it. */
  path: string
  /** For search engines and previews: a sentence or two. */
  description: string
  /** Beside `copy`, which every page has. A page without them works without JavaScript. */
  scripts?: readonly ScriptName[]
  /** The page has no script at all, not even `copy`. */
  isStill?: boolean
  /** Search engines must not list it: an error, or a page of one caller. */
  unlisted?: boolean
  body: Html
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
]

/**
 * Scripts and styles come from files of this host alone; `unsafe-inline` is nowhere, and no page may be framed.
 * `forms`: the page sends forms to this host. `secret`: its address or its content belongs to one caller, so no cache may
 * store it. `recomputes`: a worker of this host runs WebAssembly for the page.
 */
export function pageHeaders({ forms = false, secret = false, recomputes = false } = {}): Record<string, string> {
  let policy = [...POLICY, COMMON_POLICY].join('; ')
  if (forms) policy = policy.replace("form-action 'none'", "form-action 'self'")
  if (recomputes)
    policy = policy
      .replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'")
      .replace("trusted-types 'none'", `trusted-types ${WORKER_POLICY}`)
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': secret ? 'no-store' : 'no-cache',
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
  }
}

/** The pages in the header, in order, those in the footer, and there what programs read. */
const NAVIGATION = [
  ['/try', 'Try it'],
  ['/guide', 'Guide'],
  ['/docs', 'API'],
  ['/pricing', 'Pricing'],
  ['/verify', 'Verify'],
  ['/chain', 'Receipts'],
  ['/status', 'Status'],
  ['/account', 'Account'],
] as const
const FOOTER = [
  ['/accuracy', 'Accuracy'],
  ['/guide/methodology', 'Methodology'],
  ['/guide/trust', 'Trust'],
  ['/guide/security', 'Security'],
] as const
const FOR_PROGRAMS = [
  ['/llms.txt', 'For agents'],
  ['/openapi.json', 'OpenAPI'],
  ['/api/agent/v1/capabilities', 'Capabilities'],
  ['/v1/keys', 'Signing keys'],
  ['/risk-flags', 'Risk flags'],
  ['/methodology', 'Methods'],
] as const

/** The whole document as text. Values in the body are escaped. */
export function renderPage({ baseUrl, assets, offlinePublic, canTry }: Site, parts: PageParts): string {
  const { title, path, description, body } = parts
  const names = parts.isStill ? [] : (['copy', ...(parts.scripts ?? [])] as const)
  const scripts = names.map((name) => assets.scripts[name].path)
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>${title === NAME ? title : `${title} · ${NAME}`}</title>
      <meta name="description" content=${description} />
      ${
        parts.unlisted
          ? html`<meta name="robots" content="noindex" />`
          : html`<link rel="canonical" href=${`${baseUrl}${path}`} />
            <meta property="og:type" content="website" />
            <meta property="og:site_name" content=${NAME} />
            <meta property="og:url" content=${`${baseUrl}${path}`} />
            <meta property="og:title" content=${title} />
            <meta property="og:description" content=${description} />
            <meta name="twitter:card" content="summary" />`
      }
      <link rel="icon" type="image/svg+xml" href=${assets.icon.path} />
      <link rel="stylesheet" href=${assets.style.path} />
      ${scripts.map((address) => html`<script key=${address} src=${address} defer></script>`)}
    </head>
    <body>
      <a class="skip" href="#main">To the content</a>
      <header><nav aria-label="Main">
        <a class="brand" href="/" aria-current=${path === '/' ? 'page' : undefined}>${NAME}</a>
        ${NAVIGATION.filter(([address]) => canTry || address !== '/try').map(
          ([address, name]) =>
            html`<a key=${address} href=${address} aria-current=${markOf(address, path)}>${name}</a>`,
        )}
      </nav></header>
      ${offlinePublic && html`<aside class="mode">${OFFLINE_NOTICE}</aside>`}
      <main id="main">${body}</main>
      <footer>
        <ul>${linksTo(FOOTER)}</ul>
        <ul aria-label="For programs"><li>For programs:</li>${linksTo(FOR_PROGRAMS)}</ul>
        <p>Nothing on this page comes from another host.</p>
      </footer>
    </body>
  </html>`
  return `<!doctype html>\n${renderToString(page)}\n`
}

const NAME = 'Countersign'
export const OFFLINE_NOTICE =
  'Offline mode: this service is for trying out. Nothing is really paid here, and subscriptions are simulated.'

const linksTo = (pages: readonly (readonly [address: string, name: string])[]) =>
  pages.map(([address, name]) => html`<li key=${address}><a href=${address}>${name}</a></li>`)

/** The value of aria-current of a link of the navigation. */
function markOf(address: string, path: string): 'page' | 'true' | undefined {
  if (address === path) return 'page'
  const parent = path.startsWith('/receipts') ? '/chain' : path
  return parent === address || path.startsWith(`${address}/`) ? 'true' : undefined
}

/** A group of the way at the side of a page. Only that of the page itself is open, so that its entry is in sight. */
export function SideGroup({ name, isOpen, children }: { name: string; isOpen: boolean; children?: Html }): Html {
  return html`<details class="group" open=${isOpen}><summary>${name}</summary><ul aria-label=${name}>${children}</ul></details>`
}
