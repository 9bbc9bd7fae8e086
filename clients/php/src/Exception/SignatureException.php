<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** The webhook is not signed with one of the secrets. Respond with 401. */
final class SignatureException extends MizanException
{
}
