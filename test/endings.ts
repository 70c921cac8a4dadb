// What files of one process share and none of them closes, such as a browser: `test/together.ts` closes it after the last file.

/** Open until the last file has ended. */
export const endings = new AsyncDisposableStack()
