// The resource behind a link to a whole result. Its address opens this one result for as long as it is kept, and nothing else: a
// model sees it, so it is not the recovery token, which can also take a request back.
import { createHmac } from 'node:crypto'
import { ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { execute } from '../operation.ts'
import { getRequest } from '../verification/operations.ts'
import { isSameToken, recoveryToken } from '../verification/recovery-token.ts'
import type { LinkedResource } from './resources.ts'
import type { Link } from './tool.ts'

const FORM = /^service:\/\/results\/([0-9a-f-]{36})\/([A-Za-z0-9_-]{43})$/

export function wholeResult(requestId: string, { secrets }: Pick<Api, 'secrets'>): Link {
  return {
    uri: `service://results/${requestId}/${accessTo(requestId, secrets)}`,
    name: 'result',
    description: 'The whole result, with the text of the page and the receipt: read it by resources/read.',
  }
}

function accessTo(requestId: string, { recovery }: Api['secrets']): string {
  return createHmac('sha256', recovery).update(`reads the result of ${requestId}`).digest('base64url')
}

export const resultResource: LinkedResource = {
  mimeType: 'application/json',
  async read(uri, request) {
    const [, requestId, access] = FORM.exec(uri) ?? []
    const { secrets } = request.api
    if (!requestId || !access || !isSameToken(accessTo(requestId, secrets), access)) return null
    const credentials = { ...request.credentials, bearer: recoveryToken(secrets.recovery, requestId) }
    try {
      const answer = await execute(getRequest, () => ({ request_id: requestId }), { ...request, credentials })
      return answer.kind === 'completed' ? answer.bytes.toString() : null
    } catch (error) {
      if (error instanceof AppError && error.code === 'result_expired') throw new ResourceNotFoundError(uri)
      throw error
    }
  },
}
