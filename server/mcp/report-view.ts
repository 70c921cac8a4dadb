// The page with which hosts that support MCP Apps show an answer. Other hosts show only the answer.
import { RESOURCE_MIME_TYPE, RESOURCE_URI_META_KEY } from '@modelcontextprotocol/ext-apps/server'
import { execute } from '../operation.ts'
import { openChatPage } from '../pages/assets.ts'
import { getKeys } from '../receipts/chain-operations.ts'
import type { Resource } from './resources.ts'

const URI = 'ui://countersign/report'

/** For `_meta` of the tools whose answers the page shows. Older hosts know only the second member. */
export const REPORT_VIEW = { ui: { resourceUri: URI }, [RESOURCE_URI_META_KEY]: URI }

export const reportView: Resource = {
  uri: URI,
  name: 'report',
  title: 'Report',
  description: 'Shows a result or a checked receipt, and checks it again in the frame of the host.',
  mimeType: RESOURCE_MIME_TYPE,
  // The lists are empty, so the host lets the page connect to no address.
  _meta: { ui: { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: true } },
  async read(request) {
    const render = await openChatPage()
    const { body: keys } = await execute(getKeys, () => ({}), request)
    return render({ service: request.api.baseUrl, keys })
  },
}
