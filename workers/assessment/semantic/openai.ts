// The protocol of the chat completions API: vLLM, llama.cpp, Ollama, LM Studio, gateways, OpenAI. Servers differ in what they
// ignore, drop or refuse, so the answer is read as if no schema had been given.
import { answerSchema } from './answer.ts'
import { boundedFetch } from './failures.ts'
import { countOf, type Model, type ModelOptions, openModel, type Protocol } from './model.ts'

export function openaiModel(options: ModelOptions): Model {
  // Servers are named with and without the version in their path.
  const named = options.baseUrl ?? 'https://api.openai.com/v1'
  const url = `${/\/v\d+$/.test(named) ? named : `${named}/v1`}/chat/completions`
  const protocol: Protocol = {
    provider: 'openai',
    settings: { server: 'OPENAI_BASE_URL', key: 'OPENAI_API_KEY', model: 'OPENAI_MODEL' },
    optional: ['max_tokens', 'reasoning_effort', 'temperature', 'response_format'],
    async ask({ system, page, claim }, without, signal) {
      const has = (name: string) => !without.has(name)
      const limit = has('max_tokens') ? 'max_tokens' : 'max_completion_tokens'
      const schema = { name: 'answer', strict: true, schema: answerSchema }
      const request = {
        model: options.model,
        messages: [
          { role: 'system', content: system },
          { role: 'user', content: `${page}\n\n${claim}` },
        ],
        [limit]: options.maxTokens,
        ...(has('temperature') && { temperature: 0 }),
        ...(has('reasoning_effort') && { reasoning_effort: 'low' }),
        ...(has('response_format') && { response_format: { type: 'json_schema', json_schema: schema } }),
      }
      const { choices, usage } = await post(url, options.apiKey, request, signal)
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

async function post(url: string, key: string, request: object, signal: AbortSignal): Promise<Completion> {
  const reply = await boundedFetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(request),
    // A redirect would take the key and the question to a host that the operator has not named.
    redirect: 'error',
    signal,
  })
  if (!reply.ok) throw refusal(reply, await reply.text())
  return (await reply.json()) as Completion
}

/** What is read of an answer. Servers give null for what they do not have, or leave it out. */
interface Completion {
  choices?: { message?: { content?: unknown; refusal?: unknown } | null; finish_reason?: unknown }[] | null
  usage?: (Record<string, unknown> & { prompt_tokens_details?: { cached_tokens?: unknown } | null }) | null
}

/** An error for a status that is no success, with the same properties as the errors of an SDK. */
function refusal({ status, headers }: Response, body: string): Error {
  const { message = body, type } = errorIn(body)
  return Object.assign(new Error(`${status} ${message}`), {
    ...{ status, headers, type },
    requestID: headers.get('x-request-id'),
  })
}

function errorIn(body: string): { message?: string; type?: unknown } {
  try {
    return Object(JSON.parse(body).error)
  } catch {
    return {}
  }
}
