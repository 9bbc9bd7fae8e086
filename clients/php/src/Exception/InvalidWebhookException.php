<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** The webhook is signed, but does not have the documented format. Respond with 400. */
final class InvalidWebhookException extends MizanException
{
}
