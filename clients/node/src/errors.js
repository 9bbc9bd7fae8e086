/** Base class of all errors of this package. */
export class MizanError extends Error {
  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * There was no complete response, also after the retries. The request may or may not have been executed. Send it again
 * later: a create with the same merchantReference returns the same intent.
 */
export class ApiConnectionError extends MizanError {
  /**
   * @param {string} requestId the id that was sent with the request
   * @param {ErrorOptions} [options]
   */
  constructor(requestId, options) {
    super('The API did not respond.', options);
    this.requestId = requestId;
  }
}

/** The API responded with an error, or with something that is not a payment intent. */
export class ApiError extends MizanError {
  /**
   * @param {number} status
   * @param {string} message for a developer to read; the text may change
   * @param {Record<string, string[]>} errors what is wrong, by field; empty unless the status is 422
   * @param {string} requestId quote it when you ask for help
   * @param {number | null} [retryAfter] seconds to wait before the next request, if the API said so
   */
  constructor(status, message, errors, requestId, retryAfter = null) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
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
