<?php

declare(strict_types=1);

namespace Mizan\Client;

use Mizan\Client\Exception\InvalidWebhookException;
use Mizan\Client\Exception\SignatureException;

final class Webhook
{
    /**
     * Check the signature of a webhook and return its event. Nothing is parsed before the signature is valid.
     *
     * @param string $rawBody the bytes of the request: file_get_contents('php://input')
     * @param ?string $signature its header Service-Signature, null if it is missing
     * @param string|list<string> $secrets the webhook secret and, for a day after a roll, also the old one
     * @throws SignatureException if no secret made the signature
     * @throws InvalidWebhookException if the signed body is not an event
     * @throws \InvalidArgumentException if there is no secret or an empty one: anybody could sign with that
     */
    public static function verify(
        string $rawBody,
        ?string $signature,
        #[\SensitiveParameter] string|array $secrets,
    ): WebhookEvent {
        $accepted = (array) $secrets;
        if ($accepted === [] || in_array('', $accepted, true)) {
            throw new \InvalidArgumentException('there must be a webhook secret, and none may be empty');
        }
        if ($signature === null || $signature === '') {
            throw new SignatureException('The header Service-Signature is missing.');
        }
        foreach ($accepted as $secret) {
            if (hash_equals(hash_hmac('sha256', $rawBody, $secret), $signature)) {
                return self::parseEvent($rawBody);
            }
        }
        throw new SignatureException('The signature does not match.');
    }

    private static function parseEvent(string $rawBody): WebhookEvent
    {
        $body = json_decode($rawBody);
        $id = $body->id ?? null;
        $event = $body->event ?? null;
        $uuid = $body->data->uuid ?? null;
        if (!is_string($id) || $id === '' || !is_string($event) || $event === '' || !PaymentIntent::isUuid($uuid)) {
            throw new InvalidWebhookException('The body is not an event.');
        }
        return new WebhookEvent($id, $event, $uuid);
    }
}
