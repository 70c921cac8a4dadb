// The list of the pages that search engines may show, in the format of sitemaps.org.

/** Pages beside the guide and the reference. Those of one caller, or of one result, are not listed. */
const PAGES = ['/', '/pricing', '/verify', '/chain', '/status', '/accuracy', '/account', '/guide', '/docs'] as const

export interface SitemapParts {
  /** Public address of the service, without a slash at its end. */
  baseUrl: string
  /** Paths of the guide's pages. */
  guide: Iterable<string>
  /** Names of the reference's pages. */
  reference: Iterable<string>
  /** Whether `/try` is there. */
  canTry: boolean
}

/** @returns XML */
export function renderSitemap({ baseUrl, guide, reference, canTry }: SitemapParts): string {
  const paths = [...PAGES, ...(canTry ? ['/try'] : []), ...guide, ...Array.from(reference, (name) => `/docs/${name}`)]
  const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${paths.map((path) => `<url><loc>${escaped(`${baseUrl}${path}`)}</loc></url>\n`).join('')}</urlset>
`
}
