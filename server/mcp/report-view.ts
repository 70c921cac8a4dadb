// The page that hosts with MCP Apps draw an answer with, beside the answer itself. Hosts without it see the answer alone.
import { RESOURCE_MIME_TYPE, RESOURCE_URI_META_KEY } from '@modelcontextprotocol/ext-apps/server'
import { execute } from '../operation.ts'
import { openChatPage } from '../pages/assets.ts'
import { getKeys } from '../receipts/chain-operations.ts'
import type { Resource } from './resources.ts'

const URI = 'ui://countersign/report'

/** For `_meta` of the tools whose answers the page draws. Older hosts know the second member alone. */
export const REPORT_VIEW = { ui: { resourceUri: URI }, [RESOURCE_URI_META_KEY]: URI }

export const reportView: Resource = {
  uri: URI,
  name: 'report',
  title: 'Report',
  description: 'Draws a result or a checked receipt, and checks it again in the frame of the host.',
  mimeType: RESOURCE_MIME_TYPE,
  // No address is named, so the host lets the page ask none.
  _meta: { ui: { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: true } },
  async read(request) {
    const render = await openChatPage()
    const { body: keys } = await execute(getKeys, () => ({}), request)
    return render({ service: new URL(request.api.baseUrl).host, keys })
  },
}
