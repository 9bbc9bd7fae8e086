<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 422: the request is invalid. `errors` says why, by field. Do not send it again unchanged. */
final class InvalidRequestException extends ApiException
{
}
