// Reads the API key of a command: a file of mode 600, or the environment.
import { UsageError } from '../arguments.ts'
import { fromEnvironment } from './environment.ts'
import { readSecretFile } from './secret-file.ts'

/** The key of `--key`, else of COUNTERSIGN_KEY: a path, or the key itself. Throws a UsageError, which never repeats a key. */
export async function readApiKey(file: string | undefined): Promise<string> {
  if (file !== undefined && IS_KEY.test(file.trim()))
    throw new UsageError('--key takes a file, not the key: arguments can be seen by other users of this machine.')
  const set = fromEnvironment('COUNTERSIGN_KEY')?.trim()
  if (file === undefined && set === undefined)
    throw new UsageError('Which account? Give --key FILE, which holds its API key, or set COUNTERSIGN_KEY.')
  if (file === undefined && set !== undefined && IS_KEY.test(set)) return set
  const key = await readSecretFile(file ?? set ?? '', 'an API key')
  if (!IS_KEY.test(key)) throw new UsageError(`${file ?? 'The file of COUNTERSIGN_KEY'} holds no API key (ctk_...).`)
  return key
}

const IS_KEY = /^ctk_[\w-]{8,}$/
