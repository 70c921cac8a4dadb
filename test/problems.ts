// The problems for which the configuration refuses an environment.
import { ConfigError, readConfig } from '../server/config.ts'

export function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}
