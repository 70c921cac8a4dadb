// Everything this service offers over MCP.
import type { Api } from '../context.ts'
import { describeOffer } from '../verification/offer.ts'
import { controlTools } from './control-tools.ts'
import { promptsFeature, waysOfWorking } from './prompts.ts'
import { documents, resourcesFeature } from './resources.ts'
import type { Feature } from './server.ts'
import { tasksFeature } from './tasks.ts'
import { toolsFeature } from './tools.ts'
import { verifySourceTool } from './verify-source.ts'

export function offeredFeatures(api: Api): Feature[] {
  const { tools, more } = api.config.mcpVerificationEnabled
    ? { tools: [verifySourceTool(api)], more: [tasksFeature()] }
    : { tools: [], more: [] }
  return [
    toolsFeature([...controlTools(), ...tools]),
    resourcesFeature(documents),
    promptsFeature(waysOfWorking(describeOffer(api.config))),
    ...more,
  ]
}
