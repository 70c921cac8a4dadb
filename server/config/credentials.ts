// Hides credentials in settings before they are shown.

/** Stands for a secret that is set. */
export const HIDDEN = '(set, hidden)'
const CREDENTIALS_HIDDEN = ' (credentials hidden)'

/** A URL without its password and query, either of which may be a secret; any other text as it is. */
export function withoutCredentials(text: string): string {
  if (!/^[a-z]+:\/\//.test(text) || !URL.canParse(text)) return text
  const url = new URL(text)
  if (!url.username && !url.password && !url.search) return text
  return `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname}${CREDENTIALS_HIDDEN}`
}

/** Whether `withoutCredentials` left something out. */
export function hasHiddenCredentials(shown: string): boolean {
  return shown.endsWith(CREDENTIALS_HIDDEN)
}

/** The URL that `withoutCredentials` left. */
export function shownPart(shown: string): string {
  return hasHiddenCredentials(shown) ? shown.slice(0, -CREDENTIALS_HIDDEN.length) : shown
}
