// All server features that are offered over MCP: tools, resources, prompts, and tasks for paid verifications.
import type { Api } from '../context.ts'
import type { Operation } from '../operation.ts'
import { describeOffer } from '../verification/offer/offer.ts'
import { refusal } from './check-answers.ts'
import { checkTools } from './check-tools.ts'
import { controlTools } from './control-tools.ts'
import { pageTextResource } from './page-texts.ts'
import { offeredPrompts, promptsFeature } from './prompts.ts'
import { reportTasksFeature } from './report-tasks.ts'
import { reportView } from './report-view.ts'
import { resources, resourcesFeature } from './resources.ts'
import { resultResource } from './result-resource.ts'
import { type Face, type Feature, IDENTITY } from './server.ts'
import { tasksFeature } from './tasks.ts'
import { toolsFeature } from './tools.ts'
import { verifyClaimsTool, verifySourceTool } from './verify-source.ts'

export function offeredFeatures(api: Api, catalog: readonly Operation[]): Feature[] {
  const { mcpVerificationEnabled: paid, mcpVerifyClaimsEnabled: claims } = api.config
  const paidTools = paid ? [verifySourceTool(api), ...(claims ? [verifyClaimsTool(api)] : [])] : []
  return [
    toolsFeature([...controlTools(catalog), ...paidTools]),
    resourcesFeature([...resources, reportView], paid ? [resultResource] : []),
    promptsFeature(offeredPrompts(describeOffer(api.config))),
    ...(paid ? [tasksFeature()] : []),
  ]
}

/** Of /mcp/check: free tools alone, for hosts and directories that forbid paid ones. */
export const checkFeatures: readonly Feature[] = [
  toolsFeature(checkTools),
  resourcesFeature([...resources.filter(({ uri }) => uri === 'service://keys'), reportView], [pageTextResource]),
  reportTasksFeature(),
]

export const CHECK_FACE: Face = {
  path: '/mcp/check',
  identity: { ...IDENTITY, name: 'countersign-check', title: 'Countersign Check' },
  instructions: () =>
    'Free tools that check citations: quotes and whole reports against the pages they cite, receipts and results of this service. ' +
    'No account is needed. Errors with retryable true may be tried again by the same call after retry_after_seconds.',
  // Room for a whole result, as text within a message.
  bodyLimit: 1_048_576,
  refuseCall: refusal,
}
