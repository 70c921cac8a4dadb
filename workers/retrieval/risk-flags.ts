// Risk flags that retrieval may raise: circumstances of an observation, never a judgement. They go into the result's
// `risk_flags` unchanged; a name is never reused for something else.

export const retrievalRiskFlags = {
  cross_host_redirect: 'The page came from another host than the one asked for.',
  internationalized_host:
    'The host of the page has an xn-- label; when it is shown decoded, it may look like another name.',
  ip_address_host: 'The URL of the page names an IP address instead of a host.',
  certificate_near_expiry: 'The TLS certificate of the page expires within 48 hours.',
  no_content_length: 'Only the end of the connection marked the end of the page; a truncated page looks the same.',
  refresh_header: 'The response had a Refresh header, which was not followed.',
  attachment: 'The response was offered as a download (Content-Disposition: attachment).',
} as const

export type RetrievalRiskFlag = keyof typeof retrievalRiskFlags

/** About the page as a whole, raised by page-quality.ts for the claims that it is to be compared with. */
export const pageFlagMeanings = {
  challenge_suspected: 'The page has phrases of a robot check; its other text was assessed.',
  login_wall_suspected: 'The page asks to log in or subscribe; it may not show all of its text.',
  soft_404_suspected: 'The page has phrases of a "not found" page; its other text was assessed.',
  script_shell_suspected:
    'The page shows little text for its size, or asks for JavaScript; it may be filled in by scripts.',
} as const satisfies Record<`${Lowercase<string>}`, string>
export type PageFlag = keyof typeof pageFlagMeanings
