<?php

declare(strict_types=1);

namespace Mizan\Client;

/** A payment intent, as the API returns it. */
final class PaymentIntent
{
    private const TIME = '/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\z/';

    /**
     * @param int $amount minor units: 1000 is one dinar
     * @param string $status `requires_payment_method`, `processing`, `succeeded` or `canceled`; fulfil the order only if
     *     `succeeded`
     * @param ?array<string, string> $metadata
     */
    public function __construct(
        public readonly string $uuid,
        public readonly ?string $reference,
        public readonly ?string $merchantReference,
        public readonly int $amount,
        public readonly string $currency,
        public readonly string $status,
        public readonly ?string $description,
        public readonly Customer $customer,
        public readonly ?string $returnUrl,
        public readonly ?array $metadata,
        public readonly ?\DateTimeImmutable $expiresAt,
        public readonly string $checkoutUrl,
        public readonly ?\DateTimeImmutable $createdAt,
        public readonly ?\DateTimeImmutable $updatedAt,
    ) {
    }

    /**
     * Return the intent in a response body, or null if there is none. Unknown fields are ignored.
     *
     * @internal
     */
    public static function parse(mixed $body): ?self
    {
        $data = $body->data ?? null;
        if (!$data instanceof \stdClass) {
            return null;
        }
        try {
            return new self(
                $data->uuid ?? null,
                $data->reference ?? null,
                $data->merchant_reference ?? null,
                $data->amount ?? null,
                $data->currency ?? null,
                $data->status ?? null,
                $data->description ?? null,
                new Customer($data->customer->external_id ?? null),
                $data->return_url ?? null,
                self::readMetadata($data->metadata ?? null),
                self::readTime($data->expires_at ?? null),
                $data->checkout_url ?? null,
                self::readTime($data->created_at ?? null),
                self::readTime($data->updated_at ?? null),
            );
        } catch (\TypeError) { // strict types: a field has another type
            return null;
        }
    }

    /**
     * Return whether this is a uuid with hyphens. Nothing else may become part of a URL.
     *
     * @internal
     */
    public static function isUuid(mixed $value): bool
    {
        return is_string($value) && preg_match('/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/i', $value) === 1;
    }

    /** @return ?array<string, string> */
    private static function readMetadata(?\stdClass $metadata): ?array
    {
        $pairs = $metadata === null ? null : (array) $metadata;
        foreach ($pairs ?? [] as $value) {
            if (!is_string($value)) {
                throw new \TypeError('not a text');
            }
        }
        return $pairs;
    }

    private static function readTime(?string $time): ?\DateTimeImmutable
    {
        if ($time === null) {
            return null;
        }
        if (preg_match(self::TIME, $time) !== 1) {
            throw new \TypeError('not a time');
        }
        try {
            return new \DateTimeImmutable($time);
        } catch (\Exception) {
            throw new \TypeError('not a time');
        }
    }
}
