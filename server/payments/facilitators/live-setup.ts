// Opens the facilitator of testnet and mainnet mode from the configuration, and checks that they fit.
// Loaded only in these modes, because the libraries of two chains load slowly.
import type { Config } from '../../config.ts'
import { EVM_NETWORKS } from '../../interface/networks.ts'
import type { Logger } from '../../telemetry.ts'
import type { Threads } from '../../threads/pool.ts'
import { openEvmNetwork } from '../chains/evm.ts'
import type { PaymentNetwork, SupportedKind } from '../chains/payment-network.ts'
import { openSignatureChecks } from '../chains/signature-checks.ts'
import { NETWORKS } from '../networks.ts'
import { type Inspection, PaymentSetupError } from '../startup-checks.ts'
import type { Facilitator } from '../x402.ts'
import { cdpHeaders } from './cdp.ts'
import { reasonOfNoAnswer } from './facilitator-answers.ts'
import { type FacilitatorClient, openFacilitatorClient } from './facilitator-client.ts'
import { buildLiveFacilitator, type LiveOptions } from './live-facilitator.ts'
import { type CallFailures, watchFacilitator, watchNode } from './watched-upstreams.ts'

const MODES = {
  testnet: {
    facilitator: 'https://x402.org/facilitator',
    evm: NETWORKS.testnet.evm,
    solana: { id: NETWORKS.testnet.solana, rpc: 'https://api.devnet.solana.com' },
  },
  mainnet: {
    facilitator: 'https://api.cdp.coinbase.com/platform/v2/x402',
    evm: NETWORKS.mainnet.evm,
    solana: { id: NETWORKS.mainnet.solana, rpc: 'https://api.mainnet-beta.solana.com' },
  },
} as const

/** Names of facilitators, by host, that are clearer than the host. */
const PROVIDERS: Record<string, string> = { 'api.cdp.coinbase.com': 'cdp' }

/** A caller waits for the check. No caller waits for the settlement, which takes as long as blocks take. */
const TIMEOUT_MS = { verify: 15_000, settle: 60_000 }
/** Facilitators change the account that pays their fees on Solana, and announce it in /supported only. */
const REFRESH_MS = 60_000

/** The part of the configuration that payments depend on. */
export type PaymentConfig = Pick<
  Config,
  'paymentMode' | 'facilitatorUrl' | 'cdpKey' | 'payToEvm' | 'payToSolana' | 'evmRpcUrl' | 'solanaRpcUrl'
>

/** Values that tests use instead of the constants. */
export interface LiveOverrides extends Pick<LiveOptions, 'chainTimeoutMs' | 'upstream'> {
  settleTimeoutMs?: number
  /** The node that is asked in cases of doubt if none is configured. */
  publicRpcUrl?: string
  /** Threads that check the signatures; by default the facilitator opens its own. */
  threads?: Threads | undefined
  /** Count failures of calls about payments; by default nothing is counted. */
  metrics?: CallFailures
}

/**
 * Checks that facilitator and chains fit the configuration. Throws PaymentSetupError if they do not. If they do not answer,
 * the process starts all the same, because it can serve results that are paid already.
 */
export async function openLiveFacilitator(
  config: PaymentConfig,
  log: Logger,
  overrides: LiveOverrides = {},
): Promise<Facilitator> {
  await using opened = new AsyncDisposableStack()
  const parts = await openParts(config, overrides, opened)
  const findings = await inspectParts(parts)
  const wrong = findings.filter((finding) => finding.verdict === 'wrong')
  if (wrong.length > 0) throw new PaymentSetupError(wrong)
  for (const { subject, detail } of findings.filter((finding) => finding.verdict === 'away'))
    log.error({ event: 'payment_setup', subject, detail })
  const watched = {
    ...parts,
    calls: watchFacilitator(parts.calls, parts.provider, log, overrides.metrics),
    networks: parts.networks.map((network) => watchNode(network, log, overrides.metrics)),
  }
  if (config.payToSolana) {
    // If the facilitator does not answer, its last answer remains in force.
    const refreshing = setInterval(() => void adoptKinds(watched).catch(() => {}), REFRESH_MS).unref()
    opened.defer(() => clearInterval(refreshing))
  }
  const closing = opened.move()
  const { chainTimeoutMs, upstream } = overrides
  return buildLiveFacilitator({ ...watched, log, chainTimeoutMs, upstream, close: () => closing.disposeAsync() })
}

/** All checks with their findings, for `doctor`. */
export async function inspectPayments(config: PaymentConfig): Promise<Inspection[]> {
  await using opened = new AsyncDisposableStack()
  return inspectParts(await openParts(config, {}, opened))
}

/** The configured chains, for `payments reconcile`. Disposing `opened` closes them. */
export async function openNetworks(config: PaymentConfig, opened: AsyncDisposableStack): Promise<PaymentNetwork[]> {
  return (await openParts(config, {}, opened)).networks
}

interface Parts {
  mode: 'testnet' | 'mainnet'
  provider: string
  url: string
  calls: FacilitatorClient
  networks: PaymentNetwork[]
}

async function openParts(
  config: PaymentConfig,
  overrides: LiveOverrides,
  opened: AsyncDisposableStack,
): Promise<Parts> {
  const { paymentMode: mode } = config
  if (mode === 'offline') throw new Error('offline mode has no live facilitator')
  const url = config.facilitatorUrl ?? MODES[mode].facilitator
  const { evm, solana } = MODES[mode]
  const networks: PaymentNetwork[] = []
  const nodeFor = (configured: string | undefined, rest: string) => ({
    rpcUrl: configured ?? overrides.publicRpcUrl ?? rest,
    proves: configured !== undefined,
  })
  if (config.payToEvm) {
    const signatures = opened.use(openSignatureChecks(overrides.threads))
    for (const [i, id] of evm.entries()) {
      const node = nodeFor(i === 0 ? config.evmRpcUrl : undefined, EVM_NETWORKS[id].publicNode)
      networks.push(openEvmNetwork({ id, payTo: config.payToEvm, signatures, ...node }))
    }
  }
  if (config.payToSolana) {
    const { openSolanaNetwork } = await import('../chains/solana.ts')
    const node = nodeFor(config.solanaRpcUrl, solana.rpc)
    networks.push(await openSolanaNetwork({ id: solana.id, payTo: config.payToSolana, ...node }))
  }
  return { mode, provider: nameOf(url), url, calls: buildCalls(url, config, overrides), networks }
}

function nameOf(url: string): string {
  const { host } = new URL(url)
  return (PROVIDERS[host] ?? host).slice(0, 64)
}

function buildCalls(url: string, { cdpKey }: PaymentConfig, { settleTimeoutMs }: LiveOverrides): Parts['calls'] {
  const authorize = cdpKey && cdpHeaders(cdpKey, url)
  const quick = openFacilitatorClient({ url, timeoutMs: TIMEOUT_MS.verify, authorize })
  const patient = openFacilitatorClient({ url, timeoutMs: settleTimeoutMs ?? TIMEOUT_MS.settle, authorize })
  return {
    verify: (payload, terms) => quick.verify(payload, terms),
    settle: (payload, terms) => patient.settle(payload, terms),
    getSupported: () => quick.getSupported(),
  }
}

async function inspectParts(parts: Parts): Promise<Inspection[]> {
  return [await inspectFacilitator(parts), ...(await Promise.all(parts.networks.map((n) => n.inspect()))).flat()]
}

async function inspectFacilitator(parts: Parts): Promise<Inspection> {
  const subject = `facilitator ${parts.provider}`
  try {
    const missing = await adoptKinds(parts)
    return missing.length === 0
      ? { verdict: 'right', subject, detail: `takes ${parts.networks.map((network) => network.id).join(', ')}` }
      : {
          verdict: 'wrong',
          subject,
          detail: `does not settle exact payments on ${missing.join(', ')}`,
          cure: 'set FACILITATOR_URL to one that does, or unset the PAY_TO_... of that network',
        }
  } catch (error) {
    const reason = reasonOfNoAnswer(error)
    const refused = reason === 'http_401' || reason === 'http_403'
    const cure = refused
      ? 'check CDP_API_KEY_ID and CDP_API_KEY_SECRET'
      : 'check FACILITATOR_URL; until it answers, no payment is possible'
    return { verdict: refused ? 'wrong' : 'away', subject, detail: `GET ${parts.url}/supported: ${reason}`, cure }
  }
}

/** Passes each network its entry of /supported; answers the networks that cannot be paid on. */
async function adoptKinds({ calls, networks }: Parts): Promise<string[]> {
  const { kinds } = await calls.getSupported()
  const kindOf = (id: string): SupportedKind | undefined =>
    kinds.find((kind) => kind.x402Version === 2 && kind.scheme === 'exact' && kind.network === id)
  return networks.filter((network) => !network.adopt(kindOf(network.id))).map((network) => network.id)
}
