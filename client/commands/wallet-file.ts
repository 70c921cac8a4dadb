// Reads the wallet of a command: a file of mode 600, or the environment.
import { UsageError } from '../arguments.ts'
import { openWallet, parseWallet, type Wallet, WalletError, type WalletKey } from '../wallet.ts'
import { fromEnvironment } from './environment.ts'
import { readSecretFile } from './secret-file.ts'

/** The wallet of `--wallet`, else of COUNTERSIGN_WALLET: a path, or the key itself. Throws a UsageError. */
export async function readWallet(file: string | undefined, options: { solanaRpcUrl?: string } = {}): Promise<Wallet> {
  return await asUsage(async () => openWallet(await readWalletKeys(file), options))
}

/** Throws a UsageError, which never repeats a key. */
export async function readWalletKeys(file: string | undefined): Promise<WalletKey[]> {
  if (file !== undefined && LOOKS_LIKE_KEY.test(file.trim()))
    throw new UsageError('--wallet takes a file, not the key: arguments can be seen by other users of this machine.')
  const set = fromEnvironment('COUNTERSIGN_WALLET')
  if (file === undefined && set === undefined)
    throw new UsageError(
      'Which wallet? Give --wallet FILE, or set COUNTERSIGN_WALLET. countersign wallet new FILE makes one.',
    )
  // Also matches a malformed key and two keys, because a file name would be repeated in a message.
  if (file === undefined && set !== undefined && LOOKS_LIKE_KEY.test(set.trim()))
    return await asUsage(() => parseWallet(set))
  const path = file ?? set ?? ''
  const parse = (text: string) =>
    parseWallet(text).catch((cause: Error) => {
      // With a cause of its own it is about a package that is not installed.
      if (!(cause instanceof WalletError) || cause.cause !== undefined) throw cause
      throw new UsageError(`${path} is not a wallet file. ${cause.message}`, { cause })
    })
  return await asUsage(() => readSecretFile(path, 'the key of a wallet', parse))
}

/** Errors of a wallet count as wrong usage. */
export async function asUsage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof WalletError) throw new UsageError(cause.message, { cause })
    throw cause
  }
}

/** Longer than names of files are, and without a dot or a slash; or a list of numbers. */
const LOOKS_LIKE_KEY = /^["']?(\[[\s\d,]*\]?|[0-9A-Za-z\s,[\]]{48,})["']?$/
