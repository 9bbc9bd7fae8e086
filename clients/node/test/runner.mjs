// Reads operations as JSON, runs them with this client, and prints the results. tests/clients/shared_cases.py has the format.
import { readFileSync } from 'node:fs';

import * as mizan from '../src/index.js';

const KINDS = {
  ApiConnectionError: 'connection',
  ApiError: 'api',
  AuthenticationError: 'authentication',
  ForbiddenError: 'forbidden',
  InvalidRequestError: 'invalid_request',
  InvalidWebhookError: 'invalid_webhook',
  NotFoundError: 'not_found',
  RateLimitedError: 'rate_limited',
  ServerError: 'server',
  SignatureError: 'signature',
  TypeError: 'argument',
};

async function run({ call, client: options, arguments: given }, pauses) {
  if (call === 'verify') {
    const { id, event, intentUuid } = mizan.verifyWebhook(Buffer.from(given.body_hex, 'hex'), given.signature, given.secrets);
    return { event: { id, event, intent_uuid: intentUuid } };
  }
  const client = new mizan.MizanClient({
    baseUrl: options.base_url,
    apiKey: options.api_key,
    accessToken: options.access_token,
    timeoutMs: options.timeout * 1000,
    retries: options.retries,
    sleep: async (milliseconds) => pauses.push(milliseconds / 1000),
  });
  const intent = call === 'retrieve'
    ? await client.retrievePaymentIntent(given.uuid)
    : await client.createPaymentIntent({
      merchantReference: given.merchant_reference,
      amount: given.amount,
      description: given.description,
      returnUrl: given.return_url,
      customerExternalId: given.customer_external_id,
      metadata: given.metadata,
      expiresAt: given.expires_at && new Date(given.expires_at),
    });
  return {
    intent: {
      uuid: intent.uuid,
      reference: intent.reference,
      merchant_reference: intent.merchantReference,
      amount: intent.amount,
      currency: intent.currency,
      status: intent.status,
      description: intent.description,
      customer: { external_id: intent.customer.externalId },
      return_url: intent.returnUrl,
      metadata: intent.metadata,
      expires_at: intent.expiresAt && intent.expiresAt.getTime(),
      checkout_url: intent.checkoutUrl,
      created_at: intent.createdAt && intent.createdAt.getTime(),
      updated_at: intent.updatedAt && intent.updatedAt.getTime(),
    },
  };
}

const results = [];
for (const operation of JSON.parse(readFileSync(0, 'utf8'))) {
  const pauses = [];
  try {
    results.push({ ...(await run(operation, pauses)), pauses });
  } catch (error) {
    if (!(error.name in KINDS)) throw error;
    const { status, message, errors, requestId, retryAfter } = error;
    results.push({ error: KINDS[error.name], status, message, errors, request_id: requestId, retry_after: retryAfter, pauses });
  }
}
console.log(JSON.stringify(results));
