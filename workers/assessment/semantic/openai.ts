// The protocol of the chat completions API: vLLM, llama.cpp, Ollama, LM Studio, gateways, OpenAI. Servers differ in what they
// ignore, drop or refuse, so the answer is read as if no schema had been given.
import OpenAI from 'openai'
import { answerSchema } from './answer.ts'
import { boundedFetch } from './failures.ts'
import { countOf, type Model, type ModelOptions, openModel, type Protocol } from './model.ts'

export function openaiModel(options: ModelOptions): Model {
  const client = buildClient(options)
  const protocol: Protocol = {
    provider: 'openai',
    settings: { server: 'OPENAI_BASE_URL', key: 'OPENAI_API_KEY', model: 'OPENAI_MODEL' },
    optional: ['max_tokens', 'reasoning_effort', 'temperature', 'response_format'],
    async ask({ system, page, claim }, without, signal) {
      const has = (name: string) => !without.has(name)
      const limit = has('max_tokens') ? 'max_tokens' : 'max_completion_tokens'
      const schema = { name: 'answer', strict: true, schema: answerSchema }
      const request: OpenAI.ChatCompletionCreateParamsNonStreaming = {
        model: options.model,
        messages: [
          { role: 'system', content: system },
          { role: 'user', content: `${page}\n\n${claim}` },
        ],
        [limit]: options.maxTokens,
        ...(has('temperature') && { temperature: 0 }),
        ...(has('reasoning_effort') && { reasoning_effort: 'low' as const }),
        ...(has('response_format') && { response_format: { type: 'json_schema' as const, json_schema: schema } }),
      }
      const { choices, usage } = await client.chat.completions.create(request, { signal })
      const [choice] = Array.isArray(choices) ? choices : []
      const content = choice?.message?.content
      const isDeclined = choice?.finish_reason === 'content_filter' || Boolean(choice?.message?.refusal)
      const cached = countOf(usage?.prompt_tokens_details?.cached_tokens)
      return {
        written: typeof content === 'string' ? content : '',
        ending: isDeclined ? 'declined' : choice?.finish_reason === 'length' ? 'length' : 'whole',
        usage: {
          input: Math.max(0, countOf(usage?.prompt_tokens) - cached),
          output: countOf(usage?.completion_tokens),
          cacheWrite: 0,
          cacheRead: cached,
        },
      }
    },
  }
  return openModel(protocol, options)
}

function buildClient({ apiKey, baseUrl, timeoutMs }: ModelOptions): OpenAI {
  return new OpenAI({
    apiKey,
    organization: null,
    project: null,
    webhookSecret: null,
    // Servers are named with and without the version in their path.
    baseURL: baseUrl === undefined ? 'https://api.openai.com/v1' : /\/v\d+$/.test(baseUrl) ? baseUrl : `${baseUrl}/v1`,
    maxRetries: 0,
    // The caller's signal comes first.
    timeout: 2 * timeoutMs,
    logLevel: 'off',
    // A redirect would take the key and the question to a host that the operator has not named.
    fetchOptions: { redirect: 'error' },
    fetch: boundedFetch,
  })
}
