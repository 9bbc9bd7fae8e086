const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Return whether this is a uuid with hyphens. Nothing else may become part of a URL.
 * @param {unknown} value
 * @returns {value is string}
 */
export const isUuid = (value) => typeof value === 'string' && UUID.test(value);

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Return the intent in a response body, or null if there is none. Unknown fields are ignored.
 * @param {unknown} body
 * @returns {import('./index.js').PaymentIntent | null}
 */
export function parsePaymentIntent(body) {
  if (!isObject(body) || !isObject(body.data)) return null;
  const { data } = body;
  const customer = data.customer ?? {};
  const metadata = data.metadata ?? null;
  const isValid = [data.uuid, data.currency, data.status, data.checkout_url].every((value) => typeof value === 'string')
    && Number.isSafeInteger(data.amount)
    && isObject(customer)
    && [data.reference, data.merchant_reference, data.description, data.return_url, customer.external_id].every(isOptionalText)
    && (metadata === null || (isObject(metadata) && Object.values(metadata).every((value) => typeof value === 'string')))
    && [data.expires_at, data.created_at, data.updated_at].every(isOptionalTime);
  if (!isValid) return null;
  return /** @type {any} */ ({
    uuid: data.uuid,
    reference: data.reference ?? null,
    merchantReference: data.merchant_reference ?? null,
    amount: data.amount,
    currency: data.currency,
    status: data.status,
    description: data.description ?? null,
    customer: { externalId: customer.external_id ?? null },
    returnUrl: data.return_url ?? null,
    metadata,
    expiresAt: readTime(data.expires_at),
    checkoutUrl: data.checkout_url,
    createdAt: readTime(data.created_at),
    updatedAt: readTime(data.updated_at),
  });
}

/** @param {unknown} value */
const isOptionalText = (value) => value === undefined || value === null || typeof value === 'string';

/** @param {unknown} value */
const isOptionalTime = (value) => value === undefined || value === null
  || (typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value)));

/** @param {any} value */
const readTime = (value) => ((value ?? null) === null ? null : new Date(value));
