// Pages that are costly to read for their size: what the security review of November 2026 found, within the limits on size.
import { gzipSync } from 'node:zlib'

const PAD = 256 * 1024

const bodies = [
  // A comment that never ends, again and again, before a rule.
  `<style>@media "${'/* '.repeat(PAD / 3)}" {a{display:none}}</style><p>The harbour was opened in 1874.`,
  // A selector that looks through a long attribute.
  `<style>${'[x~="a"]{color:red}'.repeat(500)}</style><p x="${'b '.repeat(PAD)}">The harbour was opened in 1874.`,
  // Millions of lines.
  `<p>${'a\r'.repeat(PAD * 8)}`,
  // Elements within elements, each with a style.
  `<p>${'<b style="color:red">x'.repeat(20_000)}`,
]

/** Gzipped HTML. */
export const COSTLY_PAGES: readonly Buffer[] = bodies.map((body) => gzipSync(`<!doctype html><title>x</title>${body}`))
