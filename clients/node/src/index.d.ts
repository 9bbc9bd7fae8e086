export const VERSION: string;

export interface MizanClientOptions {
  /** Ends in `/api/v1`. */
  baseUrl: string;
  apiKey: string;
  accessToken: string;
  /** The longest time for one try, in milliseconds. Default: 10000. */
  timeoutMs?: number;
  /** How often a request is sent again after no response, 408, 429 or 5xx. Default: 3. */
  retries?: number;
  /** Makes the pauses between tries; tests replace it. */
  sleep?: (milliseconds: number) => Promise<unknown>;
}

export interface NewPaymentIntent {
  /** Your reference. It makes the create idempotent. */
  merchantReference: string;
  /** Minor units: 1000 is one dinar. */
  amount: number;
  /** Default: `LYD`. */
  currency?: string;
  description?: string;
  returnUrl?: string;
  customerExternalId?: string;
  metadata?: Record<string, string>;
  expiresAt?: Date;
}

export interface PaymentIntent {
  uuid: string;
  reference: string | null;
  merchantReference: string | null;
  /** Minor units: 1000 is one dinar. */
  amount: number;
  currency: string;
  /** Fulfil the order only if `succeeded`. */
  status: 'requires_payment_method' | 'processing' | 'succeeded' | 'canceled' | (string & {});
  description: string | null;
  customer: { externalId: string | null };
  returnUrl: string | null;
  metadata: Record<string, string> | null;
  expiresAt: Date | null;
  checkoutUrl: string;
  createdAt: Date | null;
  updatedAt: Date | null;
}

export interface WebhookEvent {
  /** Id of the delivery, the same in every retry. Store it, and ignore events that you have already stored. */
  id: string;
  /** Respond with 2xx to events that you do not know. */
  event: 'payment_intent.succeeded' | 'payment_intent.canceled' | (string & {});
  /** Retrieve this intent. The event itself has neither amount nor status. */
  intentUuid: string;
}

/** Creates and retrieves payment intents. */
export class MizanClient {
  /** Throws TypeError if an option cannot be used. */
  constructor(options: MizanClientOptions);

  /**
   * Create an intent, or return the one that has this merchantReference. A repeat changes nothing, so compare the
   * amount of the result with your order. Rejects with ApiError or ApiConnectionError.
   */
  createPaymentIntent(intent: NewPaymentIntent): Promise<PaymentIntent>;

  /** Return the intent with its current status. Rejects with ApiError, ApiConnectionError, or TypeError for no uuid. */
  retrievePaymentIntent(uuid: string): Promise<PaymentIntent>;
}

/**
 * Check the signature of a webhook and return its event. Nothing is parsed before the signature is valid.
 * Throws SignatureError, InvalidWebhookError, or TypeError if there is no secret or an empty one.
 */
export function verifyWebhook(
  rawBody: Uint8Array,
  signature: string | undefined | null,
  secrets: string | readonly string[],
): WebhookEvent;

/** Base class of all errors of this package. */
export class MizanError extends Error {
  constructor(message: string, options?: { cause?: unknown });
}

/** There was no complete response, also after the retries. Send the same request again later. */
export class ApiConnectionError extends MizanError {
  constructor(requestId: string, options?: { cause?: unknown });
  /** The id that was sent with the request. */
  readonly requestId: string;
}

/** The API responded with an error, or with something that is not a payment intent. */
export class ApiError extends MizanError {
  constructor(
    status: number,
    message: string,
    errors: Record<string, string[]>,
    requestId: string,
    retryAfter?: number | null,
  );
  readonly status: number;
  /** What is wrong, by field, for example `amount` or `metadata.color`. Empty unless the status is 422. */
  readonly errors: Record<string, string[]>;
  /** Quote it when you ask for help. */
  readonly requestId: string;
  /** Seconds to wait before the next request, if the API said so. */
  readonly retryAfter: number | null;
}

/** 401: the API key or the access token is missing, unknown or revoked. */
export class AuthenticationError extends ApiError {}

/** 403: the intent belongs to another application. */
export class ForbiddenError extends ApiError {}

/** 404: there is no intent with this uuid. */
export class NotFoundError extends ApiError {}

/** 422: the request is invalid. `errors` says why, by field. Do not send it again unchanged. */
export class InvalidRequestError extends ApiError {}

/** 429: too many requests, also after the retries. */
export class RateLimitedError extends ApiError {}

/** 5xx: a problem of the API, also after the retries. Send the request again later. */
export class ServerError extends ApiError {}

/** The webhook is not signed with one of the secrets. Respond with 401. */
export class SignatureError extends MizanError {}

/** The webhook is signed, but does not have the documented format. Respond with 400. */
export class InvalidWebhookError extends MizanError {}
