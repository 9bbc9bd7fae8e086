<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** The API responded with an error, or with something that is not a payment intent. */
class ApiException extends MizanException
{
    /**
     * @param string $message for a developer to read; the text may change
     * @param array<string, list<string>> $errors what is wrong, by field; empty unless the status is 422
     * @param string $requestId quote it when you ask for help
     * @param ?int $retryAfter seconds to wait before the next request, if the API said so
     */
    final public function __construct(
        public readonly int $status,
        string $message,
        public readonly array $errors,
        public readonly string $requestId,
        public readonly ?int $retryAfter = null,
    ) {
        parent::__construct($message);
    }
}
