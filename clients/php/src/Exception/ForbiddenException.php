<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 403: the intent belongs to another application. */
final class ForbiddenException extends ApiException
{
}
