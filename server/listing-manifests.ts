// The part of `cli doctor --listing` about the registry of MCP: the files that are published there have its form, and describe the
// endpoints of the service at BASE_URL in this release.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Finding } from './doctor.ts'
import { errorMessage } from './errors.ts'
import { IDENTITY } from './mcp/server.ts'

/** Each file, and the path of its endpoint. */
const MANIFESTS = { 'server.json': '/mcp', 'server-check.json': '/mcp/check' } as const

/** What the registry requires of a server that is reached over HTTP. */
const manifest = z.looseObject({
  $schema: z.string().regex(/^https:\/\/static\.modelcontextprotocol\.io\/schemas\/[\d-]+\/server\.schema\.json$/),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(100),
  version: z.string().min(1).max(255),
  remotes: z
    .array(
      z.looseObject({
        type: z.literal('streamable-http'),
        url: z.string(),
        variables: z.record(z.string(), z.looseObject({})).optional(),
      }),
    )
    .min(1),
})
type Manifest = z.output<typeof manifest>

const ROOT = join(import.meta.dirname, '..')

/** @param root the folder of the files */
export function checkManifests(baseUrl: string, root = ROOT): Promise<Finding[]> {
  return Promise.all(Object.entries(MANIFESTS).map(([name, path]) => checkManifest(name, path, baseUrl, root)))
}

async function checkManifest(subject: string, path: string, baseUrl: string, root: string): Promise<Finding> {
  const fail = (detail: string, cure: string): Finding => ({ ok: false, subject, detail, cure })
  let text: unknown
  try {
    text = JSON.parse(await readFile(join(root, subject), 'utf8'))
  } catch (error) {
    return fail(`cannot be read: ${errorMessage(error)}`, `restore ${subject} of this release`)
  }
  const { data, error } = manifest.safeParse(text)
  if (!data) {
    const [issue] = error.issues
    return fail(`${issue?.path.join('.')}: ${issue?.message}`, 'give it the form that its $schema describes')
  }
  if (data.version !== IDENTITY.version)
    return fail(
      `is of version ${data.version}, and the endpoint of version ${IDENTITY.version}`,
      'publish the file of this release',
    )
  const [address] = addressesOf(data, baseUrl)
  const own = new URL(baseUrl)
  const expected = `${own.host}${own.pathname.replace(/\/$/, '')}${path}`
  return address === expected
    ? { ok: true, subject, detail: `${data.name} ${data.version} at ${expected}` }
    : fail(`leads to ${address ?? 'no address'}, not to ${expected}`, 'fill in {host}, or set BASE_URL to that address')
}

/** Host and path of each remote; `{host}` stands for the service. */
function addressesOf({ remotes }: Manifest, baseUrl: string): string[] {
  return remotes.map(({ url, variables = {} }) => {
    const filled = Object.hasOwn(variables, 'host') ? url.replace('{host}', new URL(baseUrl).host) : url
    if (!URL.canParse(filled)) return filled
    const { host, pathname } = new URL(filled)
    return host + pathname
  })
}
