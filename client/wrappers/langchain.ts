// A tool for LangChain (`@langchain/core`): a model buys one verification with each call.
import { type DynamicStructuredTool, tool } from '@langchain/core/tools'
import { buy, type Question, TOOL, type Verdict, verdictOf, type WrapperOptions } from './purchase.ts'

export type { Question, Verdict, WrapperOptions } from './purchase.ts'

/**
 * The tool `verify_source`, which takes `{source_url, claim}`. The content of its message is a `Verdict` as JSON, the artifact
 * is the same as an object. A failed purchase throws CountersignError, which a ToolNode shows to the model.
 */
export function verifySourceTool(options: WrapperOptions): DynamicStructuredTool {
  return tool(
    async ({ source_url, claim }: Question, config: { signal?: AbortSignal }): Promise<[string, Verdict]> => {
      const verdict = verdictOf(await buy({ source_url, claim }, options, config?.signal))
      return [JSON.stringify(verdict), verdict]
    },
    { name: TOOL.name, description: TOOL.description, schema: TOOL.schema, responseFormat: 'content_and_artifact' },
  ) as DynamicStructuredTool
}
