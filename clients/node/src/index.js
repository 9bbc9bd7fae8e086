/** Client of the Mizan API, for merchants' servers. */
export { MizanClient, VERSION } from './client.js';
export {
  ApiConnectionError,
  ApiError,
  AuthenticationError,
  ForbiddenError,
  InvalidRequestError,
  InvalidWebhookError,
  MizanError,
  NotFoundError,
  RateLimitedError,
  ServerError,
  SignatureError,
} from './errors.js';
export { verifyWebhook } from './webhooks.js';
