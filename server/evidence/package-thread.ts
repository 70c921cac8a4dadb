// Builds evidence packages. It runs in threads: a page of some megabytes takes a tenth of a second of a core, and as much again for the
// memory that is used and given back.
import { unpackCapture } from './packing.ts'
import { buildPackage, type PackageParts } from './wacz.ts'

/** What a package is made of, as it reaches a thread: bytes arrive there without the class of Buffer. */
export interface PackageOrder extends Pick<PackageParts, 'captureId' | 'receipts' | 'result'> {
  /** The capture as packCapture made it. */
  packed: Uint8Array
  manifest: Uint8Array
  stamps: readonly { note: string; reply: Uint8Array }[]
}

/** The bytes of the package. Throws for a capture that packCapture did not make. */
export function buildOrdered({ packed, manifest, stamps, ...about }: PackageOrder): Uint8Array {
  return buildPackage({
    ...about,
    capture: unpackCapture(asBuffer(packed)),
    manifest: asBuffer(manifest),
    stamps: stamps.map(({ note, reply }) => ({ note, reply: asBuffer(reply) })),
  })
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength)
