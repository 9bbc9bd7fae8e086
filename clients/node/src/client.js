import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

import {
  ApiConnectionError,
  ApiError,
  AuthenticationError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  RateLimitedError,
  ServerError,
} from './errors.js';
import { isObject, isUuid, parsePaymentIntent } from './payment_intent.js';

export const VERSION = '1.0.0';

const MAX_RESPONSE_BYTES = 1_048_576;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 8_000;
const MAX_RETRY_AFTER_MS = 10_000;
/** @type {Record<number, typeof ApiError>} */
const ERRORS = {
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  422: InvalidRequestError,
  429: RateLimitedError,
};

/** Creates and retrieves payment intents. */
export class MizanClient {
  #baseUrl;
  #headers;
  #timeoutMs;
  #retries;
  #sleep;

  /**
   * Throws TypeError if an option cannot be used.
   * @param {import('./index.js').MizanClientOptions} options
   */
  constructor({ baseUrl, apiKey, accessToken, timeoutMs = 10_000, retries = 3, sleep = wait }) {
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError('baseUrl must begin with https:// or http://');
    if (![apiKey, accessToken].every((value) => typeof value === 'string' && /^[!-~]+$/.test(value))) {
      throw new TypeError('apiKey and accessToken must have only visible ASCII characters, and no line feed');
    }
    if (!(timeoutMs > 0) || !Number.isInteger(retries) || retries < 0) {
      throw new TypeError('timeoutMs must be positive, and retries must not be negative');
    }
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#headers = {
      Accept: 'application/json',
      Authorization: `Bearer ${accessToken}`,
      'User-Agent': `mizan-client-node/${VERSION}`,
      'X-API-Key': apiKey,
    };
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.#sleep = sleep;
  }

  /**
   * Create an intent, or return the one that has this merchantReference.
   *
   * `merchantReference` makes the create idempotent: it can be repeated, and there is one intent. A repeat changes
   * nothing, so compare the amount of the result with your order. `amount` is in minor units: 1000 is one dinar.
   * Rejects with ApiError or ApiConnectionError.
   * @param {import('./index.js').NewPaymentIntent} intent
   */
  async createPaymentIntent({
    merchantReference, amount, currency = 'LYD', description, returnUrl, customerExternalId, metadata, expiresAt,
  }) {
    const body = {
      merchant_reference: merchantReference,
      amount,
      currency,
      description,
      return_url: returnUrl,
      customer: customerExternalId === undefined ? undefined : { external_id: customerExternalId },
      metadata,
      expires_at: expiresAt?.toISOString(),
    };
    return this.#request('POST', '/payment-intents', JSON.stringify(body)); // leaves out what is undefined
  }

  /**
   * Return the intent with its current status. Rejects with ApiError, ApiConnectionError, or TypeError for no uuid.
   * @param {string} uuid
   */
  async retrievePaymentIntent(uuid) {
    if (!isUuid(uuid)) throw new TypeError('uuid must be the uuid of an intent');
    return this.#request('GET', `/payment-intents/${uuid}`);
  }

  /**
   * Send the request until there is a response that is not worth a retry. All tries have one request id.
   * @param {string} method
   * @param {string} path
   * @param {string} [body]
   */
  async #request(method, path, body) {
    const requestId = randomUUID();
    for (let retry = 0; ; retry += 1) {
      try {
        return await this.#send(method, path, body, requestId);
      } catch (error) {
        if (retry === this.#retries || !isRetried(error)) throw error;
        await this.#sleep(pauseBefore(retry, error));
      }
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string | undefined} body
   * @param {string} requestId
   */
  async #send(method, path, body, requestId) {
    let response;
    let content;
    try {
      response = await fetch(this.#baseUrl + path, {
        method,
        headers: {
          ...this.#headers,
          'X-Request-Id': requestId,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        body,
        redirect: 'manual', // following one would send the credentials elsewhere
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      content = await readBody(response);
    } catch (cause) {
      throw new ApiConnectionError(requestId, { cause });
    }
    return readIntent(response, content, requestId);
  }
}

/**
 * Return the body, or nothing if it is larger than any response of the API.
 * @param {Response} response
 */
async function readBody(response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of /** @type {any} */ (response.body ?? [])) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) return Buffer.alloc(0); // leaving the loop closes the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Return the intent in a response. Throws the error that the response stands for.
 * @param {Response} response
 * @param {Buffer} content
 * @param {string} sentId
 */
function readIntent({ status, headers }, content, sentId) {
  const requestId = headers.get('X-Request-Id') || sentId;
  const body = parseJson(content);
  if (status !== 200 && status !== 201) {
    const { message, errors } = readError(status, body);
    const Kind = status >= 500 ? ServerError : ERRORS[status] ?? ApiError;
    throw new Kind(status, message, errors, requestId, readRetryAfter(headers.get('Retry-After') ?? ''));
  }
  const intent = parsePaymentIntent(body);
  if (intent === null) throw new ApiError(status, 'The response is not a payment intent.', {}, requestId);
  return intent;
}

/** @param {Buffer} content */
function parseJson(content) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    return null;
  }
}

/**
 * Return the message and the fields of an error, as far as the body has them.
 * @param {number} status
 * @param {unknown} body
 */
function readError(status, body) {
  const content = isObject(body) ? body : {};
  const texts = [content.message, content.error].filter((text) => typeof text === 'string' && text !== '');
  const fields = isObject(content.errors) ? Object.entries(content.errors) : [];
  return {
    message: String(texts[0] ?? `The API responded with status ${status}.`),
    errors: Object.fromEntries(
      fields
        .filter(([, problems]) => Array.isArray(problems))
        .map(([field, problems]) => [
          field,
          /** @type {any[]} */ (problems).filter((problem) => typeof problem === 'string'),
        ]),
    ),
  };
}

/** @param {string} value */
const readRetryAfter = (value) => (/^\d{1,9}$/.test(value) ? Number(value) : null);

/** @param {unknown} error */
const isRetried = (error) => error instanceof ApiConnectionError
  || (error instanceof ApiError && (error.status === 408 || error.status === 429 || error.status >= 500));

/**
 * Return the pause before a retry: it doubles, is random between half and all, and obeys Retry-After.
 * @param {number} retry
 * @param {any} error
 */
function pauseBefore(retry, error) {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** retry, MAX_PAUSE_MS);
  const asked = Math.min((error.retryAfter ?? 0) * 1000, MAX_RETRY_AFTER_MS);
  return Math.max(longest * (0.5 + Math.random() / 2), asked);
}
