// The meaning of each check, and of its failure, for people who have not read the documentation.

export interface CheckWords {
  /** What holds when the check passes. */
  holds: string
  /** What was changed, or what is wrong, when it fails. */
  fails: string
}

const words = (holds: string, fails: string): CheckWords => ({ holds, fails })

/** By the name of the check, as the client gives it. */
export const CHECK_WORDS: Readonly<Record<string, CheckWords>> = {
  json: words('The file can be read in one way only.', 'The file is not JSON that every reader reads in the same way.'),
  plain_json: words('It is plain JSON data.', 'It has a value that JSON cannot express.'),
  well_formed_unicode: words('All its text is well-formed Unicode.', 'Some text in it is not well-formed Unicode.'),
  shape: words('It has every field it must have.', 'A field is missing, was added, or has the wrong form.'),
  trusted_key: words(
    'The signing key is one that is trusted here.',
    'The signing key is not one that is trusted here.',
  ),
  signature: words(
    'The signature is by that key, over exactly this receipt.',
    'The receipt was changed after it was signed, or it was signed with another key.',
  ),
  receipt_hash: words(
    'The hash of the receipt is the hash of its fields.',
    'A field of the receipt was changed, or its hash was.',
  ),
  attested_time: words('Its two times are the same time.', 'The time was changed: the two times in it differ.'),
  purchase_attestation: words(
    'The service itself sold this result.',
    'The receipt is not from a sale: an account requested it for a digest, and this file was built around it.',
  ),
  subject_sha256: words(
    'The receipt is for exactly this envelope.',
    'The receipt belongs to something else: the envelope was changed or exchanged.',
  ),
  canonical_envelope: words(
    'The envelope as you read it is the envelope that was signed.',
    'The envelope as you read it was changed. The signed bytes beside it say something else.',
  ),
  result_sha256: words(
    'Everything in the result is as it was signed: claim, verdict, quotes, text and payment.',
    'Something in the result was changed after it was signed, or the result was exchanged for another.',
  ),
  envelope_agrees: words(
    'The envelope and the result name the same request, date, method and payment.',
    'The envelope and the result disagree: one of the two was changed.',
  ),
  text_sha256: words(
    'The text of the page is as it was read.',
    'The copy of the page’s text in this file was changed.',
  ),
  evidence_quotes: words(
    'Each quote is in the text, exactly where the result says.',
    'A quote, or its place in the text, was changed.',
  ),
  evidence_digests: words(
    'Each quote is from this reading of the page.',
    'A quote was taken from another reading of a page.',
  ),
  literal_scope_only_mentions: words(
    'A result that judged nothing claims no judgement.',
    'It claims a judgement, although it says that nothing judged the claim.',
  ),
  supports_has_support: words('A verdict of support rests on a quote.', 'It says “supports” without a quote for it.'),
  contradicts_has_contradiction: words(
    'A verdict of contradiction rests on a quote.',
    'It says “contradicts” without a quote for it.',
  ),
  mixed_has_both: words('A mixed verdict rests on quotes for both.', 'It says “mixed” without quotes for both sides.'),
  bounded_observation: words('It is paid for, and it is no error.', 'It is not paid for, or it is an error.'),
  confidence_null: words('It states no number for confidence.', 'A number for confidence was added.'),
  claims_as_read: words(
    'Each claim is read with the context as the method says.',
    'A claim is said to be read in another way than the method reads it with its context.',
  ),
  publisher_unknown: words('It claims nothing about who publishes the page.', 'A publisher was added.'),
  inclusion: words(
    'The receipt is in the public log: its proof leads to the head of the log.',
    'The proof does not place this receipt in the log: the proof, the receipt or the checkpoint was changed.',
  ),
  checkpoint: words(
    'The head of the log is signed.',
    'The head of the log was changed, or it was not signed by the log.',
  ),
  pinned_tree: words(
    'It is in the log as you pinned it.',
    'It is not in the log as you pinned it: the log was rewritten.',
  ),
  start: words('The chain begins where it must.', 'The beginning of the chain was cut off or exchanged.'),
  serials: words('No receipt is missing.', 'A receipt was left out, repeated or moved.'),
  links: words(
    'Each receipt names the one before it.',
    'The chain was broken: a receipt does not follow the one before.',
  ),
  times: words('Time never goes back.', 'A time was changed: a receipt is older than the one before it.'),
  key_changes: words(
    'Each new key was introduced by the key before it.',
    'The key changes without an introduction by the key before it.',
  ),
  trusted_keys: words('Every signing key is trusted here.', 'A signing key is not one that is trusted here.'),
  receipt_hashes: words('Each hash is that of its receipt.', 'A receipt was changed, or its hash was.'),
  attested_times: words('Each receipt has one time.', 'A time was changed: two times in a receipt differ.'),
  signatures: words(
    'Every signature is by its key.',
    'A receipt was changed after it was signed, or it was signed with another key.',
  ),
  through: words('It goes through what you pinned.', 'It is another chain than the one you pinned.'),
  head: words('It ends with the receipt that it must end with.', 'The end of the chain was cut off or exchanged.'),
  page: words('It holds the receipts that it says it holds.', 'Receipts were left out or added.'),
  format: words(
    'It is written as exports are written.',
    'The file was changed: it is not written as exports are written.',
  ),
  lease: words(
    'The lease is signed, unchanged and in force now.',
    'The lease is not one that a gateway would accept now.',
  ),
  revocation: words('The revocation is signed, and unchanged.', 'The revocation was changed after it was signed.'),
  message_headers: words('Its headers are complete.', 'A header is missing, repeated or malformed.'),
  message_signature: words(
    'The service sent exactly this message.',
    'The message was changed after it was signed, or it was signed with another key.',
  ),
  alert_receipt: words(
    'The receipt in it is for this alert.',
    'The receipt in it is for another alert, or it was changed.',
  ),
  alert_requester: words('The service itself raised it.', 'The receipt was made for an account, not for an alert.'),
  alert_subject: words('The receipt is for exactly this alert.', 'The alert was changed after it was signed.'),
}

/** Words for a check of any name; an unknown one is named as it is. */
export function wordsOf(name: string): CheckWords {
  return CHECK_WORDS[name] ?? words(`The check “${name}” passes.`, `The check “${name}” fails.`)
}

/** Why a lease is refused, by the reason that the client's `verifyLease` gives. */
export const LEASE_WORDS: Readonly<Record<string, string>> = {
  malformed: 'The lease was changed: it contradicts itself, or a field has the wrong form.',
  bad_signature: 'The lease was changed after it was signed, or it was signed with another key.',
  altered: 'The readable copy of the lease was changed. The signed bytes say something else.',
  untrusted_key: 'The key that signed it is not one that is trusted here.',
  clock_skewed: 'It was signed in what is the future by the clock of this computer.',
}
