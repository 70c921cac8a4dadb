// From where the service can be reached: whether it listens on this machine only, and its public address.
import { z } from 'zod'

const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1')

export const reachVariables = {
  OFFLINE_PUBLIC: {
    schema: flag,
    default: 'false',
    about:
      '1: other machines may reach offline mode, where nothing is really paid; every answer and page says so. Needed where HOST is not loopback',
  },
} as const

/** Whether only programs on this machine reach an address. A name that is not `localhost` may lead anywhere. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return bare === 'localhost' || bare === '::1' || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(bare)
}

interface Reach {
  PAYMENT_MODE: string
  HOST: string
  BASE_URL?: string | undefined
  OFFLINE_PUBLIC: boolean
}

export function reachProblems({ PAYMENT_MODE, HOST, BASE_URL, OFFLINE_PUBLIC }: Reach): string[] {
  if (PAYMENT_MODE === 'offline' && !isLoopback(HOST) && !OFFLINE_PUBLIC)
    return [
      `HOST: other machines can reach ${HOST}, and in offline mode nothing is really paid. Set HOST=127.0.0.1, or PAYMENT_MODE=testnet ` +
        'or mainnet, or OFFLINE_PUBLIC=1 if everyone may have everything for nothing.',
    ]
  if (PAYMENT_MODE !== 'offline' && BASE_URL && URL.canParse(BASE_URL) && isLoopback(new URL(BASE_URL).hostname))
    return [`BASE_URL: callers of ${PAYMENT_MODE} mode cannot reach ${BASE_URL}, which is this machine.`]
  return []
}

/** What hosts of applications say about the public address, in the order in which they are asked. */
const PLATFORMS: readonly (readonly [name: string, addressOf: (value: string) => string])[] = [
  ['HEROKU_APP_DEFAULT_DOMAIN_NAME', (domain) => `https://${domain}`],
  ['HEROKU_APP_NAME', (name) => `https://${name}.herokuapp.com`],
  ['RENDER_EXTERNAL_URL', (address) => address],
  ['RAILWAY_PUBLIC_DOMAIN', (domain) => `https://${domain}`],
  ['FLY_APP_NAME', (name) => `https://${name}.fly.dev`],
]

/** The public address by the variables of the platform; undefined where it names none. */
export function platformAddress(env: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const [name, addressOf] of PLATFORMS) if (env[name]) return addressOf(env[name])
  return undefined
}
