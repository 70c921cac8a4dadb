// Hides credentials in settings that are no secret as a whole, before they are shown.

/** A URL without its password and query, either of which may be a secret; any other text as it is. */
export function withoutCredentials(text: string): string {
  if (!/^[a-z]+:\/\//.test(text) || !URL.canParse(text)) return text
  const url = new URL(text)
  if (!url.username && !url.password && !url.search) return text
  return `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname} (credentials hidden)`
}
