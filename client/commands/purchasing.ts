// Shared by `buy` and `mcp`: what one purchase needs, read from the options, and the terms that may be paid.
import { UsageError, visible } from '../arguments.ts'
import { type Budget, BudgetError, openRunBudget } from '../batch/budget.ts'
import { TermsError } from '../batch/buyer.ts'
import { formatUsd, parseUsd } from '../batch/money.ts'
import { priceOf } from '../batch/order.ts'
import { buyOnce, checkPurchases, type Ending, hasOpenPayment, type Question } from '../batch/purchase.ts'
import { questionFault } from '../batch/rows.ts'
import { CountersignError } from '../client.ts'
import type { Capabilities } from '../operations/discovery.ts'
import type { Terms, Wallet } from '../wallet.ts'
import { askTerms, budgetOf, checkBudgetFile, ownAddress } from './buy/buying.ts'
import { checkFolder } from './files.ts'
import { openClient } from './patience.ts'
import { serviceUrl } from './toolkit.ts'
import { type Proof, Trust } from './trust.ts'
import { readWallet } from './wallet-file.ts'

/** As given on the command line. */
export interface PurseOptions {
  service?: string
  wallet?: string
  'max-price': string
  budget?: string
  'budget-file'?: string
  journal: string
  pin?: string[]
  keys?: string[]
  introduced?: string[]
  'solana-rpc'?: string
}

export interface Offer {
  terms: Terms
  capabilities: Capabilities
  /** The wallet's own address on that network. */
  from: string
}

export interface Hooks {
  again: boolean
  confirm: (offer: Offer) => Promise<boolean>
  onWait?: () => void
  signal: AbortSignal
}

/** A wallet with its limits, and the trust in one service. Everything is read before the first request. */
export class Purse {
  readonly service: string
  readonly #wallet: Wallet
  readonly #trust: Trust
  readonly #maxPrice: bigint
  readonly #cap: bigint
  /** Shared by all purchases of this process. */
  readonly #budget: Budget
  readonly #options: PurseOptions

  private constructor(wallet: Wallet, trust: Trust, service: string, options: PurseOptions) {
    this.service = service
    this.#wallet = wallet
    this.#trust = trust
    this.#options = options
    this.#maxPrice = usdOf('--max-price', options['max-price'])
    if (options['budget-file'] !== undefined && options.budget === undefined)
      throw new UsageError('--budget-file counts against a limit: give --budget USD.')
    this.#cap = options.budget === undefined ? MOST : budgetOf(options.budget)
    this.#budget = openRunBudget(this.#cap, new Map())
  }

  /** Throws a UsageError. */
  static async open(options: PurseOptions): Promise<Purse> {
    const service = serviceUrl(options.service)
    const trust = await Trust.open(service, options.journal, options)
    const wallet = await readWallet(options.wallet, { solanaRpcUrl: options['solana-rpc'] })
    const purse = new Purse(wallet, trust, service, options)
    await checkFolder(options.journal)
    await checkBudgetFile(options['budget-file'])
    return purse
  }

  /**
   * Buys what is asked, or returns what was bought before. `show` gets the ending and, for a result, its proof. Throws a UsageError
   * for a question that the service would refuse, and a DamagedFileError or a JournalError before the service is asked.
   */
  async buy(
    question: Question,
    hooks: Hooks,
    show: (ending: Ending, proof: Proof | null) => Promise<void>,
  ): Promise<void> {
    const fault = questionFault(question)
    if (fault) throw new UsageError(`Nothing can be bought: ${fault}.`)
    const { journal: folder, 'budget-file': budgetFile } = this.#options
    await checkPurchases(folder, this.service, question)
    const capabilities = await this.#capabilities().catch((error: unknown) => error)
    if (capabilities instanceof Error) return await show(await this.#withoutService(capabilities, question), null)
    const known = capabilities as Capabilities
    const network = this.#networkOf(known)
    let proof: Proof | null = null
    await buyOnce(
      question,
      {
        service: this.service,
        network,
        wallet: this.#wallet,
        folder,
        cap: this.#cap,
        budget: this.#budget,
        ...(budgetFile !== undefined && { budgetFile }),
        again: hooks.again,
        signal: hooks.signal,
        ...(hooks.onWait && { onWait: hooks.onWait }),
        verify: async (result) => {
          proof = await this.#trust.examine(result, question).catch((error: Error) => ({
            ...{ ok: false, isReadable: true, faults: [] },
            words: `the keys of the service could not be read: ${error.message}`,
          }))
          return proof.ok
        },
        askTerms: () => this.#askTerms(question, known, network),
        confirm: (terms) => hooks.confirm({ terms, capabilities: known, from: ownAddress(this.#wallet, terms) }),
      },
      (ending) => show(ending, proof),
    )
  }

  /** Whether a payment for this question may be charged. */
  hasOpenPayment(question: Question): Promise<boolean> {
    return hasOpenPayment(this.#options.journal, this.service, question)
  }

  async #capabilities(): Promise<Capabilities> {
    const known = await openClient({ baseUrl: this.service }).getCapabilities()
    const isWhole =
      Array.isArray(known.networks) &&
      typeof known.payment_mode === 'string' &&
      /^\d{1,18}$/.test(known.price?.amount_atomic)
    if (isWhole) return known
    const message = `What ${this.service} says of itself names no price and no networks.`
    throw new CountersignError({ code: 'unexpected_response', message, retryable: false })
  }

  #networkOf({ networks }: Capabilities): string {
    const kinds = this.#wallet.addresses.map(({ kind }) => (kind === 'evm' ? 'eip155:' : 'solana:'))
    const network = networks.find((one) => kinds.some((kind) => String(one).startsWith(kind)))
    if (network) return network
    const list = networks.map((one) => visible(String(one))).join(', ')
    throw new UsageError(`This wallet has no key for the networks on which the service is paid: ${list}.`)
  }

  async #askTerms(question: Question, capabilities: Capabilities, network: string): Promise<Terms> {
    this.#checkPrice(priceOf(BigInt(capabilities.price.amount_atomic), question))
    const terms = await askTerms(this.service, [question], this.#wallet, capabilities)
    if (terms.network !== network)
      throw new TermsError(`The service asks for ${terms.network}, and names ${network} first.`)
    this.#checkPrice(BigInt(terms.amount))
    return terms
  }

  #checkPrice(price: bigint): void {
    if (price <= this.#maxPrice) return
    throw new BudgetError(`This costs ${formatUsd(price)} USDC, more than --max-price ${formatUsd(this.#maxPrice)}.`)
  }

  async #withoutService(error: Error, question: Question): Promise<Ending> {
    if (await this.hasOpenPayment(question))
      return { kind: 'pending', message: `A payment is under way, and the service does not answer: ${error.message}` }
    if (error instanceof CountersignError) return { kind: 'failed', error }
    throw error
  }
}

/** Atomic units of an option, or a UsageError. */
function usdOf(option: string, text: string): bigint {
  const atoms = parseUsd(text)
  if (atoms === null) throw new UsageError(`${option} ${text} is not an amount of dollars, such as 0.05.`)
  return atoms
}

/** Without --budget each purchase is limited by --max-price alone. */
const MOST = 10n ** 15n
