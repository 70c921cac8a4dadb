// A number of bytes in words, the same in the page and in its worker.

/** E.g. `14.2 MB`; whole megabytes from a hundred on. */
export function megabytes(bytes: number): string {
  const millions = bytes / 1e6
  return `${millions.toFixed(millions < 100 ? 1 : 0)} MB`
}
