// What the wrappers for agent frameworks share: they buy one verification, repeat it with the same key where that can help,
// and say the verdict in few words, because a whole page of text does not fit into a model's context.
import { textFragmentUrl } from '../citation.ts'
import { Countersign, type CountersignOptions, type Purchase } from '../client.ts'
import { type Clock, systemClock } from '../clock.ts'
import { CountersignError } from '../error.ts'
import { createIdempotencyKey } from '../exchange.ts'
import type { ClaimSupport, Stance, VerificationInput } from '../result.ts'

export interface WrapperOptions {
  /** A client that pays: one with the option `fetch`. Or the options for one. */
  service: Pick<Countersign, 'verifySource'> | CountersignOptions
  /** Called with each purchase before its verdict is returned: keep `bytes` and `recoveryToken` there. */
  onPurchase?(purchase: Purchase): void | Promise<void>
  /** How often one purchase is tried, each time with the same key; default 3. */
  attempts?: number
  /** `max_price_usd` and `max_age_seconds` of every purchase. */
  options?: VerificationInput['options']
  clock?: Clock
}

export interface Question {
  /** The page, https only. */
  source_url: string
  claim: string
}

/** What a verification says, for a model or a report. The receipt is in what `onPurchase` gets. */
export interface Verdict {
  claim_support: ClaimSupport
  explanation: string
  evidence: {
    stance: Stance
    quote: string
    /** The page with a text fragment, which marks the quote. */
    url: string
  }[]
  page: string
  checked_at: string
  risk_flags: string[]
  receipt_serial: number
  request_id: string
}

/** Says what to buy, in the words of a tool. */
export const TOOL = {
  name: 'verify_source',
  description:
    'Reads one public web page and says whether it supports one claim, with exact quotes from the page. ' +
    'Costs money with each call. Ask about one page and one claim at a time.',
  schema: {
    type: 'object' as const,
    properties: {
      source_url: { type: 'string' as const, description: 'The page: an https URL.' },
      claim: {
        type: 'string' as const,
        description: 'One statement, as the page should say it; at most 2000 characters.',
      },
    },
    required: ['source_url', 'claim'],
    additionalProperties: false,
  },
}

/**
 * Buys one verification. Repeats with the same key after a failure that may pass, which is not charged. A payment is never
 * signed again where the first one may still arrive. Throws CountersignError.
 */
export async function buy({ source_url, claim }: Question, wrapper: WrapperOptions, signal?: AbortSignal) {
  const { attempts = 3, onPurchase, options, clock = systemClock } = wrapper
  const service = 'verifySource' in wrapper.service ? wrapper.service : new Countersign(wrapper.service)
  const idempotencyKey = createIdempotencyKey()
  for (let attempt = 1; ; attempt++) {
    try {
      const purchase = await service.verifySource({ source_url, claim, options }, { idempotencyKey, signal })
      await onPurchase?.(purchase)
      return purchase
    } catch (error) {
      const seconds = attempt < attempts ? pauseAfter(error, attempt) : null
      if (seconds === null) throw error
      await clock.sleep(seconds * 1000, signal ?? NEVER)
    }
  }
}

/** Seconds until the next try, or null where a repeat does not help, or could sign another payment. */
function pauseAfter(error: unknown, attempt: number): number | null {
  if (!(error instanceof CountersignError) || !error.retryable || error.status === 402) return null
  if (FINAL.has(error.code)) return null
  const seconds = error.retryAfter ?? 2 ** (attempt - 1)
  return seconds <= MAX_PAUSE_S ? seconds : null
}

/** The caller stopped, the time is over, or a signed payment may still arrive. */
const FINAL: ReadonlySet<string> = new Set(['aborted', 'deadline_exceeded', 'payment_unresolved'])
/** An agent does not wait longer for one tool. */
const MAX_PAUSE_S = 60
const NEVER = new AbortController().signal

export function verdictOf({ result }: Purchase): Verdict {
  const { claim_support, explanation, evidence, source, checked_at, risk_flags, receipt, request_id } = result
  return {
    claim_support,
    explanation,
    evidence: evidence.map((item) => ({
      stance: item.stance,
      quote: item.quote,
      url: textFragmentUrl(result, item),
    })),
    page: source.final_url,
    checked_at,
    risk_flags,
    receipt_serial: receipt.attestation.serial,
    request_id,
  }
}
