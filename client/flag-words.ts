// What each risk flag of a result means for its reader. `GET /risk-flags` of a service explains the same flags at length.

/** By name. A name that several assessors use has words that hold for all of them. */
export const FLAG_WORDS: Readonly<Record<string, string>> = {
  assessed_in_parts: 'The text is long and was read in overlapping parts, whose verdicts were combined by rules.',
  attachment: 'The page was offered as a download.',
  certificate_near_expiry: 'The TLS certificate of the page was about to expire.',
  challenge_suspected: 'The page looks like a robot check.',
  charset_guessed: 'The page does not say how its letters are encoded; it was guessed.',
  claim_addresses_model: 'The claim itself gives orders to programs that read it.',
  claim_not_assessed: 'This claim could not be assessed; the other claims were.',
  claim_terms_absent: 'Some words of the claim are not on the page.',
  cross_host_redirect: 'The page came from another host than the one asked for.',
  evidence_dropped: 'The model named lines as evidence that cannot be quoted.',
  forged_markup: 'The page has text that imitates the marks of prompts or chats. That text was ignored.',
  hidden_text: 'The page hides a good part of its text from readers. That part was left out.',
  instruction_like_text: 'The page gives orders to programs that read it. That text was ignored.',
  internationalized_host: 'The name of the host has foreign letters and may look like another name.',
  invisible_characters: 'The page has invisible characters that can carry unseen content. They were removed.',
  ip_address_host: 'The address names a number instead of a host, so nothing says whose page it is.',
  language_not_supported: 'The claim or the page is in a language that the service does not know.',
  literal_fallback: 'The assessing model did not answer; passages were matched by their words instead.',
  local_fallback: 'The assessing model did not answer; the verifier that comes with the service gave the verdict.',
  login_wall_suspected: 'The page asks to log in or subscribe; it may not show all of its text.',
  low_text: 'The page shows very little text; what it is about may come from scripts.',
  more_matches: 'The wording of the claim is in more places than are shown.',
  no_content_length: 'Nothing says that the page was transferred to its end.',
  number_absent: 'A number of the claim is not on the page.',
  number_not_quoted: 'No quote holds a number that the claim states.',
  order_about_claim: 'A sentence that gives orders to programs has words of the claim, so there is no verdict.',
  page_checks_claims: 'The page checks what others claim. Such pages repeat a claim in order to refute it.',
  part_without_evidence: 'The page says nothing about a part of the claim.',
  partial_wording: 'No passage has the whole wording of the claim.',
  quoted_phrase_absent: 'The claim quotes words that are not on the page.',
  readings_differ: 'Without the suspicious lines the text reads differently, so there is no verdict.',
  refresh_header: 'A browser would go on to another page, which was not read.',
  replacement_characters: 'Some letters of the page could not be read.',
  script_shell_suspected: 'The page shows little text for its size; it may be filled in by scripts.',
  soft_404_suspected: 'The page looks like a “not found” page.',
  style_passed_over: 'The style of the page was read in part, so text that it hides may be included.',
  suspicious_text: 'The model reported lines of the page as an attempt to influence it. They were ignored.',
  text_aimed_at_verdict: 'The page tries to influence how claims about it are judged. That text was ignored.',
  text_truncated: 'Only the first 100,000 characters of the page were read.',
  verdict_doubted: 'A second reader holds the opposite of the verdict.',
  verdict_lowered: 'The evidence cannot carry the verdict of the model, so it was lowered.',
}

/** The words for a flag of any name; an unknown one is named as it is. */
export function flagInWords(flag: string): string {
  return Object.hasOwn(FLAG_WORDS, flag) ? (FLAG_WORDS[flag] ?? flag) : `${flag.replaceAll('_', ' ')}.`
}
