// Pages that are costly to read: small ones that the security review of November 2026 found, and the largest that are accepted.
import { gzipSync } from 'node:zlib'

const PAD = 256 * 1024
/** Just within the limit on decoded bytes. */
const WHOLE = 8_300_000

const bodies = [
  // A comment that never ends, again and again, before a rule.
  `<style>@media "${'/* '.repeat(PAD / 3)}" {a{display:none}}</style><p>The harbour was opened in 1874.`,
  // A selector that looks through a long attribute.
  `<style>${'[x~="a"]{color:red}'.repeat(500)}</style><p x="${'b '.repeat(PAD)}">The harbour was opened in 1874.`,
  // Millions of lines.
  `<p>${'a\r'.repeat(PAD * 8)}`,
  // Elements within elements, each with a style.
  `<p>${'<b style="color:red">x'.repeat(20_000)}`,
  // Tags that bring attributes to the body.
  '<body a=b c=d e=f>'.repeat(WHOLE / 18),
  // Short lines.
  `<pre>${'a\n'.repeat(WHOLE / 2)}`,
  // Ends of paragraphs that end what is around them.
  '<svg></p>'.repeat(WHOLE / 9),
  // The same style again and again.
  '<p style="color:red;margin:0">'.repeat(WHOLE / 30),
  // Characters that are dropped, outside of the cells of a table.
  `<table>${' \0'.repeat(WHOLE / 2)}`,
]

/** Gzipped HTML. */
export const COSTLY_PAGES: readonly Buffer[] = bodies.map((body) => gzipSync(`<!doctype html><title>x</title>${body}`))
