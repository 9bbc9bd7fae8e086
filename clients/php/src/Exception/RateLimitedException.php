<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 429: too many requests, also after the retries. */
final class RateLimitedException extends ApiException
{
}
