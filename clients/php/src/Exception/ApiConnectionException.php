<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/**
 * There was no complete response, also after the retries. The request may or may not have been executed. Send it again
 * later: a create with the same merchantReference returns the same intent.
 */
final class ApiConnectionException extends MizanException
{
    /** @param string $requestId the id that was sent with the request */
    public function __construct(public readonly string $requestId, string $cause)
    {
        parent::__construct('The API did not respond.', 0, new \RuntimeException($cause));
    }
}
