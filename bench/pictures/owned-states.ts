// The states of pages that need a sign-in: accounts with their checkouts, and the dashboard of the operator.
import {
  ask,
  blank,
  checkout,
  click,
  enter,
  inOrder,
  operator,
  press,
  register,
  type State,
  section,
  see,
  subscribe,
  wait,
} from './acts.ts'

export const OWNED: Readonly<Record<string, State>> = {
  'account-wrong-key': [
    /not a valid API key/,
    see('/account', 'local', enter({ '#api-key': 'ctk_wrong' }, 'Open the account', '.problem:not(:empty)')),
  ],
  'account-register-problem': [
    /1 to 64 of a-z/,
    see('/account', 'local', enter({ '#handle': 'Not one' }, 'Make the account')),
  ],
  'account-register-key': [/Keep the API key of newcomer/, register('newcomer')],
  'account-register-key-problem': [/Keep the API key of hasty first/, register('hasty', press('Go on to the account'))],
  'account-usage-empty': [/Active leases\s+0 of 1/, blank('Usage')],
  'account-usage': [/Receipts today\s+60 of/, section('Usage')],
  'account-usage-subscribing': [/Pay for dev/, section('Usage', subscribe, 'buyer')],
  'account-watchdogs-empty': [/will be here/, blank('Watchdogs')],
  'account-watchdogs': [
    /ly-report\s+down[\s\S]*es\s+late[\s\S]*import\s+new[\s\S]*kup\s+up[\s\S]*-one\s+paused/,
    section('Watchdogs'),
  ],
  'account-watchdogs-form': [
    /Seconds between two heartbeats/,
    section('Watchdogs', click('text=Make or change a watchdog')),
  ],
  'account-watchdogs-secret': [
    /whsec_/,
    section(
      'Watchdogs',
      inOrder(
        click('text=Make or change a watchdog'),
        enter({ '#name': 'nightly', '#webhook_url': 'https://site.test/hook' }, 'Save it', '.once'),
      ),
      'maker',
    ),
  ],
  'account-watchdogs-alerts': [
    /watchdog\.test[\s\S]*500/,
    section(
      'Watchdogs',
      inOrder(
        ...['nightly-backup', 'unheard'].map((name) => click(`summary:text-is("Alerts of ${name}")`)),
        (page) => page.locator('.alert-record').nth(1).waitFor(),
        click('.alert-record summary'),
      ),
    ),
  ],
  'account-watchdogs-question': [/are deleted/, ask('Watchdogs', /^Delete: /)],
  'account-leases-empty': [/will be here/, blank('Leases')],
  'account-leases': [
    /agent-7\s+active[\s\S]*to be renewed[\s\S]*revoked[\s\S]*expired/,
    section(
      'Leases',
      inOrder(
        click('text=Expired and revoked ones too'),
        wait('.card:has-text("agent-overdue") .tag:text-is("to be renewed")'),
        press('Renew: agent-7'),
        wait('.card:has-text("agent-7") .tag:text-is("active")'),
      ),
    ),
  ],
  'account-leases-form': [/Its name, as the gateway/, section('Leases', click('text=Grant a lease'))],
  'account-leases-question': [/cannot be taken back/, ask('Leases', /^Revoke: /)],
  'account-citations-empty': [/will be here/, blank('Citations')],
  'account-citations': [/changed[\s\S]*vanished[\s\S]*present/, section('Citations')],
  'account-citations-alerts': [
    /citation\.changed/,
    section('Citations', inOrder(click('summary:text-is("Alerts of changed")'), wait('.alert-record'))),
  ],
  'account-citations-question': [/watch and the history/, ask('Citations', /^Delete: /)],
  'account-receipts-empty': [/will be here/, blank('Receipts')],
  'account-receipts': [/file 59[\s\S]*Older/, section('Receipts')],
  'account-receipts-problem': [
    /Choose a file, or give its digest/,
    section('Receipts', inOrder(click('text=Ask for a receipt'), press('Ask for it'))),
  ],
  'account-journal-empty': [/will be here/, blank('Journal')],
  'account-journal': [/state-of-the-agent/, section('Journal')],
  'account-journal-question': [
    /holds something/,
    section(
      'Journal',
      inOrder(
        click('text=Store a file in a slot'),
        (page) =>
          page.setInputFiles('#content', { name: 'n.txt', mimeType: 'text/plain', buffer: Buffer.from('notes') }),
        enter({ '#slot': 'notes' }, 'Store it'),
      ),
    ),
  ],
  'account-keys-empty': [/registration\s+everything/, blank('API keys')],
  'account-keys-new': [
    /Keep the new API key robot[\s\S]*ctk_/,
    section('API keys', inOrder(click('text=Make a key'), enter({ '#label': 'robot' }, 'Make it', '.once')), 'owner'),
  ],
  'account-keys': [/dashboard[\s\S]*robot/, section('API keys')],
  'account-keys-form': [/What it may do/, section('API keys', click('text=Make a key'))],
  'account-keys-question': [/stop working then/, ask('API keys', /^End in a day: robot/)],
  'account-subscribed': [
    /Status\s+active/,
    inOrder(checkout('subscriber', press('Pay (simulated)')), section('Usage', undefined, 'subscriber')),
  ],

  'checkout-subscribe': [/would subscribe to/, checkout('one')],
  'checkout-paid': [/Thank you/, checkout('two', press('Pay (simulated)'))],
  'checkout-cancelled': [/Nothing was changed/, checkout('three', press('Cancel'))],
  'checkout-used': [
    /used already/,
    checkout(
      'four',
      inOrder(press('Pay (simulated)'), (page) => page.goBack()),
    ),
  ],
  'checkout-unknown': [/There is no such page/, see('/checkout/nothing'), { status: 404 }],

  'operator-closed': [/It is closed here/, see('/operator', 'empty'), { status: 404 }],
  'operator-sign-in': [/Sign in/, see('/operator', 'literal')],
  'operator-wrong-token': [
    /not the token/,
    see('/operator', 'literal', enter({ '#token': 'wrong' }, 'Sign in')),
    { status: 403 },
  ],
  'operator-calm': [/Nothing needs you[\s\S]*Completed verifications[\s\S]*Revenue in USDC/, operator('/operator')],
  'operator-requests': [/Older/, operator('/operator/requests')],
  'operator-requests-none': [/No request matches/, operator('/operator/requests?q=nothing')],
  'operator-request': [
    /accepted[\s\S]*settled[\s\S]*completed/,
    operator(async (world) => `/operator/requests/${(await world.buy('literal')).id}`),
  ],
  'operator-question': [
    /cannot be taken back/,
    operator(async (world) => `/operator/act?action=cancel_request&subject=${await world.stuck()}`),
  ],
  'operator-actions': [/sign in\s+signed in/, operator('/operator/actions')],
  'operator-needs-a-person': [
    /Payments that are not resolved: 1/,
    inOrder((_, world) => world.trouble(), operator('/operator')),
  ],
  'operator-question-charged': [
    /cannot be cancelled/,
    operator(async (world) => {
      await world.trouble()
      return `/operator/act?action=cancel_request&subject=${await world.stuck()}`
    }),
  ],
}
