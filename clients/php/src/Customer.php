<?php

declare(strict_types=1);

namespace Mizan\Client;

final class Customer
{
    public function __construct(public readonly ?string $externalId)
    {
    }
}
