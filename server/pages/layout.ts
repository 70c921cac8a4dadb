// The frame of every page for people: head, navigation, footer, and the headers that keep a page to this host.
import { renderToString } from 'preact-render-to-string'
import { type Html, html } from '../../client/page/html.ts'
import { COMMON_POLICY } from '../../client/page/policy.ts'

export interface PageParts {
  title: string
  /** Its own address, which the navigation marks. */
  path: string
  /** For search engines and previews. */
  description: string
  /** Address of the style sheet. */
  style: string
  /** Address of the script; a page without one works without JavaScript. */
  script?: string
  body: Html
}

/** Scripts and styles come from files of this host alone; `unsafe-inline` is nowhere, and no page may be framed. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-cache',
  'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; ${COMMON_POLICY}`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const LINKS = [
  ['/verify', 'Verify'],
  ['/docs', 'API'],
  ['/llms.txt', 'For agents'],
  ['/v1/keys', 'Keys'],
] as const

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0a5a66"/>' +
    '<path d="M4 8.5l2.8 2.8L12 5.5" fill="none" stroke="#fff" stroke-width="2"/></svg>',
)}`

/** The whole document as text. Values in the body are escaped. */
export function renderPage({ title, path, description, style, script, body }: PageParts): string {
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${title === 'Countersign' ? title : `${title} · Countersign`}</title>
      <meta name="description" content=${description} />
      <meta property="og:title" content=${title} />
      <meta property="og:description" content=${description} />
      <link rel="icon" href=${ICON} />
      <link rel="stylesheet" href=${style} />
      ${script && html`<script src=${script} defer></script>`}
    </head>
    <body>
      <a class="skip" href="#main">To the content</a>
      <header><nav aria-label="Main">
        <a class="brand" href="/">Countersign</a>
        ${LINKS.map(
          ([address, name]) =>
            html`<a href=${address} aria-current=${address === path ? 'page' : undefined}>${name}</a>`,
        )}
      </nav></header>
      <main id="main">${body}</main>
      <footer>Nothing on this page comes from another host.</footer>
    </body>
  </html>`
  return `<!doctype html>\n${renderToString(page)}\n`
}
