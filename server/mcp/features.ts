// All server features that are offered over MCP: tools, resources, prompts, and tasks for paid verifications.
import type { Api } from '../context.ts'
import type { Operation } from '../operation.ts'
import { describeOffer } from '../verification/offer.ts'
import { controlTools } from './control-tools.ts'
import { offeredPrompts, promptsFeature } from './prompts.ts'
import { reportView } from './report-view.ts'
import { resources, resourcesFeature } from './resources.ts'
import type { Feature } from './server.ts'
import { tasksFeature } from './tasks.ts'
import { toolsFeature } from './tools.ts'
import { verifySourceTool } from './verify-source.ts'

export function offeredFeatures(api: Api, catalog: readonly Operation[]): Feature[] {
  const { mcpVerificationEnabled: paid } = api.config
  return [
    toolsFeature([...controlTools(catalog), ...(paid ? [verifySourceTool(api)] : [])]),
    resourcesFeature([...resources, reportView]),
    promptsFeature(offeredPrompts(describeOffer(api.config))),
    ...(paid ? [tasksFeature()] : []),
  ]
}
