// The Content-Security-Policy of the pages, as far as the server's pages and the single file share it.

/** No forms that are sent, no other base address, and no text that becomes markup. */
export const COMMON_POLICY =
  "form-action 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
