<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** Base class of all exceptions of this package. */
abstract class MizanException extends \RuntimeException
{
}
