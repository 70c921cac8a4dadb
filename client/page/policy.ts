// The Content-Security-Policy of the pages, as far as the server's pages and the single file share it.

/** The name of the one policy of trusted types, on /verify alone: it lets the script of the worker be started. */
export const WORKER_POLICY = 'recompute'

/** No forms that are sent, no other base address, and no text that becomes markup. */
export const COMMON_POLICY =
  "form-action 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
