// The theme of a chat host in place of the system's. The colours of dark pages are written once, under `prefers-color-scheme`, so the
// rules themselves are turned on and off.
import { applyDocumentTheme } from '@modelcontextprotocol/ext-apps'

/** Found when first asked for: once a rule was turned on or off, it no longer names the preference. */
let darkRules: readonly CSSMediaRule[] | undefined

export function followTheme(theme: 'light' | 'dark'): void {
  applyDocumentTheme(theme)
  darkRules ??= [...document.styleSheets].flatMap(({ cssRules }) => findDark(cssRules))
  for (const { media } of darkRules) media.mediaText = theme === 'dark' ? 'all' : 'not all'
}

/** A host may put style sheets of its own into the page; those of other origins cannot be read, and are not the page's. */
function findDark(rules: CSSRuleList): CSSMediaRule[] {
  return [...rules].flatMap((rule) => {
    if (rule instanceof CSSMediaRule && rule.conditionText === '(prefers-color-scheme: dark)') return [rule]
    return rule instanceof CSSGroupingRule ? findDark(rule.cssRules) : []
  })
}
