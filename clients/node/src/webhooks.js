import { createHmac, timingSafeEqual } from 'node:crypto';

import { InvalidWebhookError, SignatureError } from './errors.js';
import { isObject, isUuid } from './payment_intent.js';

/**
 * Check the signature of a webhook and return its event. Nothing is parsed before the signature is valid.
 *
 * Throws SignatureError if no secret made the signature, and InvalidWebhookError if the signed body is not an event.
 * Throws TypeError if there is no secret or an empty one: anybody could sign with that.
 * @param {Uint8Array} rawBody the bytes of the request, for example a Buffer
 * @param {string | undefined | null} signature its header Service-Signature
 * @param {string | readonly string[]} secrets the webhook secret and, for a day after a roll, also the old one
 * @returns {import('./index.js').WebhookEvent}
 */
export function verifyWebhook(rawBody, signature, secrets) {
  if (!(rawBody instanceof Uint8Array)) {
    throw new TypeError('rawBody must be a Buffer: the body as it was received, before anything parses it');
  }
  const accepted = typeof secrets === 'string' ? [secrets] : [...secrets];
  if (accepted.length === 0 || !accepted.every((secret) => typeof secret === 'string' && secret !== '')) {
    throw new TypeError('there must be a webhook secret, and none may be empty');
  }
  if (typeof signature !== 'string' || signature === '') {
    throw new SignatureError('The header Service-Signature is missing.');
  }
  const given = Buffer.from(signature);
  if (!accepted.some((secret) => isEqual(sign(rawBody, secret), given))) {
    throw new SignatureError('The signature does not match.');
  }
  return parseEvent(rawBody);
}

/**
 * @param {Uint8Array} rawBody
 * @param {string} secret
 */
const sign = (rawBody, secret) => Buffer.from(createHmac('sha256', secret).update(rawBody).digest('hex'));

/**
 * Compare in constant time. timingSafeEqual throws if the lengths differ.
 * @param {Buffer} expected
 * @param {Buffer} given
 */
const isEqual = (expected, given) => expected.length === given.length && timingSafeEqual(expected, given);

/**
 * @param {Uint8Array} rawBody
 * @returns {import('./index.js').WebhookEvent}
 */
function parseEvent(rawBody) {
  let body;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(rawBody));
  } catch (cause) {
    throw new InvalidWebhookError('The body is not an event.', { cause });
  }
  const uuid = isObject(body) && isObject(body.data) ? body.data.uuid : undefined;
  if (!isFilled(body?.id) || !isFilled(body?.event) || !isUuid(uuid)) {
    throw new InvalidWebhookError('The body is not an event.');
  }
  return { id: body.id, event: body.event, intentUuid: uuid };
}

/** @param {unknown} value */
const isFilled = (value) => typeof value === 'string' && value !== '';
