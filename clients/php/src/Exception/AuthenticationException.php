<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 401: the API key or the access token is missing, unknown or revoked. */
final class AuthenticationException extends ApiException
{
}
