// A tool for the AI SDK (`ai`): a model buys one verification with each call.
import { jsonSchema, type Tool, tool } from 'ai'
import { buy, type Question, TOOL, type Verdict, verdictOf, type WrapperOptions } from './purchase.ts'

export type { Question, Verdict, WrapperOptions } from './purchase.ts'

/**
 * A tool that takes `{source_url, claim}` and returns a `Verdict`. A failed purchase throws CountersignError, which the SDK
 * shows to the model.
 */
export function verifySourceTool(options: WrapperOptions): Tool<Question, Verdict> {
  return tool({
    description: TOOL.description,
    inputSchema: jsonSchema<Question>(TOOL.schema),
    execute: async (question: Question, { abortSignal }: { abortSignal?: AbortSignal }): Promise<Verdict> =>
      verdictOf(await buy(question, options, abortSignal)),
  })
}
