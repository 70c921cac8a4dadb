// Reads the ZIP archive of an evidence package, which may come from anyone: sizes are bounded before anything is copied, and a name
// is never used as a path.
import { unzipSync } from 'fflate'
import { Fault } from './steps.ts'

/** In bytes. The service's own packages stay below half of it. */
export const MOST_PACKAGE_BYTES = 64 * 1024 * 1024
const MOST_FILES = 200
const LONGEST_NAME = 100
/** Names as packages have them: parts of ASCII letters, digits and a few marks, none of them only dots. */
const NAME = /^(?!.*(?:^|\/)\.+(?:\/|$))[\w.-]+(?:\/[\w.-]+)*$/

export type Files = ReadonlyMap<string, Uint8Array>

/** The files by their names. Throws a Fault for anything but an archive of stored files within the limits. */
export function readZip(bytes: Uint8Array): Files {
  if (bytes.length > MOST_PACKAGE_BYTES) throw new Fault(`it is larger than ${MOST_PACKAGE_BYTES} bytes`)
  const sizes = new Map<string, number>()
  let left = bytes.length
  const filter = ({ name, size, originalSize, compression }: Entry) => {
    // The reader gives each name to this function before it copies the file.
    if (name.length > LONGEST_NAME || !NAME.test(name)) throw new Fault('a file in it has a name that no package has')
    if (sizes.has(name)) throw new Fault(`it holds ${name} twice`)
    if (sizes.size === MOST_FILES) throw new Fault(`it holds more than ${MOST_FILES} files`)
    if (compression !== 0 || size !== originalSize)
      throw new Fault(`${name} is compressed, and a package stores its files`)
    left -= size
    if (!(left >= 0)) throw new Fault(`${name} is larger than the archive`)
    sizes.set(name, size)
    return true
  }
  let files: Record<string, Uint8Array>
  try {
    files = unzipSync(bytes, { filter })
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw new Fault('it is not a whole ZIP archive', { cause })
  }
  const short = [...sizes].find(([name, size]) => files[name]?.length !== size)
  if (short) throw new Fault(`it is cut short within ${short[0]}`)
  if (sizes.size === 0) throw new Fault('it holds no files')
  return new Map(Object.entries(files))
}

type Entry = Parameters<NonNullable<NonNullable<Parameters<typeof unzipSync>[1]>['filter']>>[0]
