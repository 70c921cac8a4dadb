// The version of this program, from its manifest: beside the sources, and above them where they are packed in dist/.
import { readFileSync } from 'node:fs'

export function ownVersion(): string {
  const isPacked = import.meta.url.includes('/dist/commands/')
  const manifest = new URL(isPacked ? '../../package.json' : '../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
