// The words of /verify that stand on the page before any script runs, on the server's page and in the single file.

export const TITLE = 'Verify a file'

export const INTRODUCTION =
  'Someone gave you a result, a receipt or an alert of this service: is it genuine and unchanged? Your browser checks every quote, ' +
  'signature and proof itself. The file is not sent anywhere.'

export const NO_SCRIPT =
  'The checks run in your browser, so they need JavaScript, which is off. The command line checks the same without a browser: ' +
  'countersign verify FILE --pin KEYID:HEX.'
