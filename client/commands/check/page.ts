// `countersign check --html`: the outcome as one page, which needs no other file and no network.
import { readFile } from 'node:fs/promises'
import { toJson } from '../../report/format-data.ts'
import type { Outcome } from '../../report/outcome.ts'

/** Where the outcome goes in the page. It cannot be in a script or a style. */
const PLACE = 'data-check=""'

/** The page without an outcome. The package brings it; a checkout of the sources makes it. */
export async function readCheckPage(): Promise<string> {
  const packed = await readFile(new URL('../../check.html', import.meta.url), 'utf8').catch(() => null)
  if (packed !== null) return packed
  // Not a fixed name, so that the package does not bring the bundler.
  const builder = new URL('../../page/build.ts', import.meta.url).href
  const { buildCheckPage } = (await import(builder)) as { buildCheckPage(): Promise<string> }
  return buildCheckPage()
}

/** The page of this outcome. @param page from `readCheckPage` */
export function fillCheckPage(page: string, outcome: Outcome): string {
  const texts: Record<string, string> = {}
  const results = outcome.citations.map(({ verdict }) => {
    if (!verdict?.result) return null
    const { normalized_text, ...source } = verdict.result.source
    texts[source.text_sha256] = normalized_text
    return { ...verdict.result, source }
  })
  const shown = JSON.stringify({ check: toJson(outcome), results, texts })
  const value = shown.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  return page.replace(PLACE, () => `data-check="${value}"`)
}
