// The one reader of the environment in the client: settings that a caller may give instead of an option.

/**
 * The setting that stands for `--service`, `--wallet` or `--key` where the option is not given. An empty value counts as
 * unset.
 */
export function fromEnvironment(
  name: 'COUNTERSIGN_SERVICE' | 'COUNTERSIGN_WALLET' | 'COUNTERSIGN_KEY',
): string | undefined {
  return process.env[name] || undefined
}
