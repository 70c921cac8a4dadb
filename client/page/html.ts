// The one template tag of the pages, in the browser and on the server: htm over preact. It escapes every value. Never used with
// `dangerouslySetInnerHTML`: the policy of trusted types refuses it.
import type { ComponentChildren } from 'preact'

export { html } from 'htm/preact'

/** What a template may hold, and what it makes. */
export type Html = ComponentChildren
