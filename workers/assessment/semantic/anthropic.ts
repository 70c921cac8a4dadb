// The protocol of the Messages API, of Anthropic and of servers that speak it.
import Anthropic from '@anthropic-ai/sdk'
import { answerSchema } from './answer.ts'
import { boundedFetch } from './failures.ts'
import { countOf, type Model, type ModelOptions, openModel, type Protocol } from './model.ts'

export function anthropicModel(options: ModelOptions): Model {
  const client = buildClient(options)
  const protocol: Protocol = {
    provider: 'anthropic',
    settings: { server: 'ANTHROPIC_BASE_URL', key: 'ANTHROPIC_API_KEY', model: 'ANTHROPIC_MODEL' },
    optional: ['temperature', 'effort', 'thinking', 'cache_control', 'output_config'],
    async ask({ system, page, claim }, without, signal) {
      const has = (name: string) => !without.has(name)
      const cached = has('cache_control') && { cache_control: { type: 'ephemeral' as const } }
      const format = { format: { type: 'json_schema' as const, schema: answerSchema } }
      const request: Anthropic.MessageCreateParamsNonStreaming = {
        model: options.model,
        max_tokens: options.maxTokens,
        // The instructions are the same for all pages; what follows is asked about once or twice.
        system: [{ type: 'text', text: system, ...cached }],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: page, ...cached },
              { type: 'text', text: claim },
            ],
          },
        ],
        ...(has('temperature') && { temperature: 0 }),
        ...(has('thinking') && { thinking: { type: 'disabled' as const } }),
        ...(has('output_config') && { output_config: { ...format, ...(has('effort') && { effort: 'low' as const }) } }),
      }
      const { content, stop_reason, usage } = await client.messages.create(request, { signal })
      const blocks = Array.isArray(content) ? content : []
      const texts = blocks.flatMap((block) =>
        block.type === 'text' && typeof block.text === 'string' ? [block.text] : [],
      )
      const isCut = stop_reason === 'max_tokens' || stop_reason === 'model_context_window_exceeded'
      return {
        // Thinking and anything else that is not text is ignored.
        written: texts.join(''),
        ending: stop_reason === 'refusal' ? 'declined' : isCut ? stop_reason : 'whole',
        usage: {
          input: countOf(usage?.input_tokens),
          output: countOf(usage?.output_tokens),
          cacheWrite: countOf(usage?.cache_creation_input_tokens),
          cacheRead: countOf(usage?.cache_read_input_tokens),
        },
      }
    },
  }
  return openModel(protocol, options)
}

function buildClient({ apiKey, baseUrl, timeoutMs }: ModelOptions): Anthropic {
  return new Anthropic({
    apiKey,
    authToken: null,
    webhookKey: null,
    baseURL: baseUrl ?? 'https://api.anthropic.com',
    // The SDK sends the key as bearer token; some servers expect it in `x-api-key`.
    defaultHeaders: baseUrl ? { 'x-api-key': apiKey } : {},
    maxRetries: 0,
    // The caller's signal comes first.
    timeout: 2 * timeoutMs,
    logLevel: 'off',
    openTelemetry: false,
    // A redirect would take the key and the question to a host that the operator has not named.
    fetchOptions: { redirect: 'error' },
    fetch: boundedFetch,
  })
}
