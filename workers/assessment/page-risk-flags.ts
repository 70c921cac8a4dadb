// The flags that page-quality.ts raises, and their meanings.

/** Flag → meaning, about the page as a whole. Flags are never renamed. */
export const pageFlagMeanings = {
  challenge_suspected: 'The page has phrases of a robot check; its other text was assessed.',
  login_wall_suspected: 'The page asks to log in or subscribe; it may not show all of its text.',
  soft_404_suspected: 'The page has phrases of a "not found" page; its other text was assessed.',
  script_shell_suspected:
    'The page shows little text for its size, or asks for JavaScript; it may be filled in by scripts.',
} as const satisfies Record<`${Lowercase<string>}`, string>
export type PageFlag = keyof typeof pageFlagMeanings
