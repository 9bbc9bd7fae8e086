<?php

declare(strict_types=1);

namespace Mizan\Client;

final class WebhookEvent
{
    /**
     * @param string $id of the delivery, the same in every retry: store it, and ignore events that you have stored
     * @param string $event `payment_intent.succeeded` or `payment_intent.canceled`; respond with 2xx to others
     * @param string $intentUuid retrieve this intent: the event itself has neither amount nor status
     */
    public function __construct(
        public readonly string $id,
        public readonly string $event,
        public readonly string $intentUuid,
    ) {
    }
}
