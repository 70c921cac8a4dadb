// The tool `verify_source`: buys as `countersign buy` does, within the budget, and asks a person first where the host can.
import { acceptedContent, inputRequired } from '@modelcontextprotocol/server'
import { UsageError } from '../../arguments.ts'
import { formatUsd } from '../../batch/money.ts'
import type { SourceQuestion } from '../../batch/order.ts'
import type { Bought, Ending } from '../../batch/purchase.ts'
import { citableResults, textFragmentUrl } from '../../citation.ts'
import { flagInWords } from '../../flag-words.ts'
import type { Offer, Purse } from '../purchasing.ts'
import { type Proof, unproved } from '../trust.ts'
import { clip, failed, type McpTool, said, type ToolContext, type ToolOutcome, textOf } from './tool.ts'

const DESCRIPTOR: McpTool['descriptor'] = {
  name: 'verify_source',
  title: 'Verify a claim against a page',
  description:
    'Buys a verification: whether the public page at source_url supports the claim, with exact quotes, links that mark them, and a ' +
    'signed receipt that is checked here. Paid from the wallet of this server, within its budget; the same question within 24 hours ' +
    'is answered again for nothing. A call that ends as pending is repeated unchanged, and is not paid twice.',
  inputSchema: {
    type: 'object',
    properties: {
      source_url: { type: 'string', description: 'One public page, https.' },
      claim: { type: 'string', description: 'One claim in a sentence, at most 2,000 characters.' },
      max_age_seconds: {
        ...{ type: 'integer', minimum: 0, maximum: 300 },
        description: 'The greatest age of an observation that may be used.',
      },
      again: { type: 'boolean', description: 'Buy anew what was bought within the last 24 hours.' },
    },
    required: ['source_url', 'claim'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
}

/** The question must be put to a person before the call can go on. */
class QuestionError extends Error {
  readonly offer: Offer

  constructor(offer: Offer) {
    super('A person must be asked.')
    this.offer = offer
  }
}

export function buildPaidTool(purse: Purse | null, { yes }: { yes?: boolean }): McpTool {
  return {
    descriptor: DESCRIPTOR,
    async run(given, context) {
      if (!purse)
        return failed(
          'no_wallet',
          'This server has no wallet. It is started with --wallet FILE and --budget USD to buy.',
        )
      const question = questionOf(given)
      try {
        return await buy(purse, question, { again: given.again === true, yes: yes ?? false, context })
      } catch (error) {
        if (error instanceof QuestionError) return ask(question, error.offer)
        throw error
      }
    },
  }
}

function questionOf(given: Record<string, unknown>): SourceQuestion {
  const { max_age_seconds: age, again } = given
  if (again !== undefined && typeof again !== 'boolean') throw new UsageError('again is true or false.')
  if (age !== undefined && typeof age !== 'number') throw new UsageError('max_age_seconds is a number.')
  const asked = { source_url: textOf(given, 'source_url').trim(), claim: textOf(given, 'claim') }
  return age === undefined ? asked : { ...asked, max_age_seconds: age }
}

interface Terms {
  again: boolean
  yes: boolean
  context: ToolContext
}

async function buy(purse: Purse, question: SourceQuestion, { again, yes, context }: Terms): Promise<ToolOutcome> {
  let outcome: ToolOutcome | null = null
  // Hosts give up after a minute; the purchase goes on with the next call.
  const patience = AbortSignal.timeout(PATIENCE_MS)
  const signal = AbortSignal.any([context.signal, patience])
  const started = performance.now()
  const seconds = () => Math.round((performance.now() - started) / 1000)
  let timer: NodeJS.Timeout | undefined
  const tell = () => void context.progress(seconds(), 'Waiting for the verification').catch(() => {})
  const onWait = () => {
    clearInterval(timer)
    tell()
    timer = setInterval(tell, PROGRESS_MS)
  }
  const confirm = async (offer: Offer) => {
    if (yes || !context.canAsk) return true
    if (context.responses?.pay === undefined) throw new QuestionError(offer)
    return acceptedContent<{ pay?: unknown }>(context.responses, 'pay')?.pay === true
  }
  try {
    await purse.buy(question, { again, confirm, onWait, signal }, async (ending, proof) => {
      outcome = describe(ending, proof)
    })
  } catch (error) {
    // What was bought is told, even if it could not be kept.
    if (!outcome) throw error
  } finally {
    clearInterval(timer)
  }
  return outcome ?? failed('failed', 'The purchase ended without an outcome.', true)
}

function ask({ source_url, claim }: SourceQuestion, { terms, capabilities }: Offer): ToolOutcome {
  const isReal = capabilities.payment_mode === 'mainnet'
  const price = `${formatUsd(BigInt(terms.amount))} USDC${isReal ? '' : ` (${capabilities.payment_mode} mode: not real money)`}`
  const message = `Pay ${price} to verify this claim against ${clip(source_url, 300)}?\n${clip(claim, 500)}`
  const requestedSchema = {
    type: 'object' as const,
    properties: { pay: { type: 'boolean' as const, title: `Pay ${price}`, default: true } },
    required: ['pay'],
  }
  return inputRequired({ inputRequests: { pay: inputRequired.elicit({ message, requestedSchema }) } })
}

function describe(ending: Ending, proof: Proof | null): ToolOutcome {
  switch (ending.kind) {
    case 'completed':
      return describeResult(ending, proof ?? unproved('it was not examined'))
    case 'declined':
      return failed('declined', 'The person said no. Nothing was bought. Do not ask again unless told to.')
    case 'over_budget':
      return failed('over_budget', `${ending.message} Nothing was bought.`)
    case 'other_terms':
      return failed('other_terms', `${ending.message} Nothing was signed, and nothing is charged.`)
    case 'failed':
      return failed(ending.error.code, ending.error.message, ending.error.retryable)
    case 'lost':
      return failed('no_result', `${ending.message} The payment may have been charged. again: true buys anew.`)
    case 'pending': {
      const words = 'Still being verified. Call again with the same arguments: nothing is paid twice.'
      return said([words], { status: 'pending', message: ending.message, retryable: true })
    }
  }
}

function describeResult(bought: Bought, proof: Proof): ToolOutcome {
  const { costUsd, isEarlier } = bought
  if (!proof.isReadable) {
    const message = `What the service sent is no result, and is not shown: ${clip(proof.words, 300)}`
    return said([`NOT VERIFIED. ${message}`], { verified: false, proof: proof.words, cost_usd: costUsd }, true)
  }
  // The tool takes one claim, so the result has one.
  const result = citableResults(bought.result)[0]!
  const { claim_support, explanation, evidence, risk_flags, source, checked_at, receipt, payment } = result
  const quotes = evidence.map((quote) => ({
    stance: quote.stance,
    quote: clip(quote.quote, QUOTE_LENGTH),
    url: textFragmentUrl(result, quote),
  }))
  const money = payment.simulated ? `${payment.mode} mode, no money moved` : `${costUsd} USDC`
  const lines = [
    ...(proof.ok ? [] : [`NOT VERIFIED, do not rely on it: ${clip(proof.words, 300)}`]),
    `${claim_support}: ${clip(explanation, EXPLANATION_LENGTH)}`,
    ...(risk_flags.length > 0
      ? [`What raises doubt: ${clip(risk_flags.map(flagInWords).join(' '), EXPLANATION_LENGTH)}`]
      : []),
    `Receipt: serial ${receipt.attestation.serial}, ${money}${isEarlier ? ', bought before' : ''}`,
    ...(proof.ok ? [`Proved: ${clip(proof.words, 300)}`] : []),
  ]
  // Every quote is shown, the later ones with what the earlier ones leave; a link that takes most of that is left out.
  let room = TEXT_LENGTH - Array.from(lines.join('\n')).length
  for (const [index, quote] of quotes.entries()) {
    const line = quoteLine(quote, Math.floor(room / (quotes.length - index)) - 1)
    room -= Array.from(line).length + 1
    lines.push(line)
  }
  return said(
    lines,
    {
      ...{ claim_support, explanation, evidence: quotes, risk_flags, final_url: source.final_url, checked_at },
      ...{ request_id: result.request_id, receipt_serial: receipt.attestation.serial, cost_usd: costUsd },
      ...{ verified: proof.ok, proof: proof.words, bought_before: isEarlier },
    },
    !proof.ok,
  )
}

function quoteLine({ stance, quote, url }: { stance: string; quote: string; url: string }, room: number): string {
  const head = `${clip(stance, 20)}: `
  const link = url.length <= room * LINK_PART ? ` ${url}` : ''
  return `${head}“${clip(quote, Math.max(1, room - Array.from(head).length - link.length - 2))}”${link}`
}

const LINK_PART = 0.7
const PATIENCE_MS = 50_000
const PROGRESS_MS = 5000
const TEXT_LENGTH = 1990
const QUOTE_LENGTH = 300
const EXPLANATION_LENGTH = 500
