// The addresses in a report: which ones are pages, and what their text fragments say.

/** Whether an address is that of a page of the web. */
export function isPage(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url)
}

/** The texts that the text directives of an address name: of each its start, and its end. */
export function fragmentTexts(url: string): string[] {
  const directive = url.split(':~:')[1]
  if (directive === undefined) return []
  return directive.split('&').flatMap((one) => {
    if (!one.startsWith('text=')) return []
    const terms = one.slice(5).split(',')
    const named = terms.filter(
      (term, n) => !(n === 0 && term.endsWith('-')) && !(n === terms.length - 1 && term.startsWith('-')),
    )
    return named.slice(0, 2).flatMap((term) => {
      const text = decode(term).replace(/\s+/g, ' ').trim()
      return text === '' ? [] : [[...text].slice(0, 1000).join('').toWellFormed()]
    })
  })
}

function decode(term: string): string {
  try {
    return decodeURIComponent(term)
  } catch {
    return term
  }
}
