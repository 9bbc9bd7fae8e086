<?php

declare(strict_types=1);

namespace Mizan\Client\Exception;

/** 404: there is no intent with this uuid. */
final class NotFoundException extends ApiException
{
}
