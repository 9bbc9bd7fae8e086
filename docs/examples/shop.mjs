import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { InvalidWebhookError, MizanClient, NotFoundError, SignatureError, verifyWebhook } from 'mizan-client';

const { MIZAN_URL, MIZAN_API_KEY, MIZAN_ACCESS_TOKEN, MIZAN_WEBHOOK_SECRETS } = process.env;
const mizan = new MizanClient({ baseUrl: MIZAN_URL, apiKey: MIZAN_API_KEY, accessToken: MIZAN_ACCESS_TOKEN });
const secrets = MIZAN_WEBHOOK_SECRETS.split(','); // the new one, and for a day after a roll the old one
const ORDERS = new Map([['order-1042', 25_500], ['order-1043', 12_000]]); // minor units: 25.500 and 12.000 dinar
for (const table of ['intents', 'inbox', 'done', 'paid']) mkdirSync(table, { recursive: true });

async function pay(reference) {
  const amount = ORDERS.get(reference);
  const returnUrl = `${process.env.SHOP_URL}/orders/${reference}`;
  const order = { merchantReference: reference, amount, description: 'Two bags of coffee', returnUrl };
  // Without a response, the client sends the same request again. A repeat changes nothing: there is one intent.
  const intent = await mizan.createPaymentIntent(order);
  if (intent.amount !== amount) {
    throw new Error(`${reference} was created before, with the amount ${intent.amount}`);
  }
  writeFileSync(`intents/${reference}`, intent.uuid);
  return [303, '', { Location: `${intent.checkoutUrl}?lang=en` }];
}

async function customerReturns(reference) {
  if (!existsSync(`intents/${reference}`)) return [404, 'no such order'];
  return [200, await settle(readFileSync(`intents/${reference}`, 'utf8'))];
}

async function webhook(request) {
  if (!(Number(request.headers['content-length']) <= 65_536)) return [413, 'too large'];
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const raw = Buffer.concat(chunks); // the raw bytes
  let event;
  try {
    event = verifyWebhook(raw, request.headers['service-signature'], secrets);
  } catch (error) {
    if (error instanceof SignatureError) return [401, 'bad signature'];
    if (error instanceof InvalidWebhookError) return [400, 'not an event'];
    throw error;
  }
  if (!/^[A-Za-z0-9_-]{1,100}$/.test(event.id)) return [400, 'not the name of a file'];
  const name = `${event.id}.${event.intentUuid}`;
  if (!existsSync(`done/${name}`)) {
    writeFileSync(`inbox/${name}`, '');
    setImmediate(workOff);
  }
  return [200, 'ok'];
}

let working = Promise.resolve();

function workOff() {
  working = working.then(async () => {
    for (const name of readdirSync('inbox')) {
      try {
        await settle(name.split('.')[1]);
        renameSync(`inbox/${name}`, `done/${name}`);
      } catch (error) {
        console.error(`${name} stays in the inbox:`, error);
      }
    }
  });
  return working;
}

/** Called by the webhook, the customer's return and the re-check. */
async function settle(uuid) {
  let intent;
  try {
    intent = await mizan.retrievePaymentIntent(uuid);
  } catch (error) {
    if (error instanceof NotFoundError) return 'unknown'; // a test delivery: its uuid belongs to no intent
    throw error;
  }
  const { merchantReference: reference, status, amount, currency } = intent;
  if (status === 'succeeded' && (amount !== ORDERS.get(reference) || currency !== 'LYD')) {
    console.log(`look into ${reference}: ${amount} was paid`);
  } else if (status === 'succeeded') {
    try {
      closeSync(openSync(`paid/${reference}`, 'wx'));
      console.log(`fulfil ${reference}`);
    } catch (error) {
      if (error.code !== 'EEXIST') throw error; // else it was fulfilled before
    }
  }
  return status;
}

/** Process each unpaid order as if an event had arrived. */
async function recheck() {
  for (const reference of readdirSync('intents')) {
    const uuid = readFileSync(`intents/${reference}`, 'utf8');
    if (!existsSync(`paid/${reference}`)) writeFileSync(`inbox/recheck-${reference}.${uuid}`, '');
  }
  await workOff();
}

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://shop');
  if (request.method === 'POST' && pathname === '/webhooks/mizan') return webhook(request);
  const [, reference, action] = /^\/orders\/([^/]+)(\/pay)?$/.exec(pathname) ?? [];
  if (!ORDERS.has(reference)) return [404, 'no such page'];
  if (request.method === 'POST' && action) return pay(reference);
  if (request.method === 'GET' && !action) return customerReturns(reference);
  return [405, 'method not allowed'];
}

const server = createServer(async (request, response) => {
  const [status, text, headers] = await answer(request).catch((error) => {
    console.error(error);
    return [500, 'try again'];
  });
  response.writeHead(status, { 'Content-Type': 'text/plain', ...headers }).end(text);
  request.resume();
});

if (process.argv[2] === 'recheck') await recheck();
else server.listen(Number(process.env.PORT), '127.0.0.1');
