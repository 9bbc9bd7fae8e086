<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 5xx: a problem of the API, also after the retries. Send the request again later. */
final class ServerException extends ApiException
{
}
