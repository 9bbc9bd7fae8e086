<?php

// Reads operations as JSON, runs them with this client, and prints the results. tests/clients/shared_cases.py has the format.

declare(strict_types=1);

use Mizan\Client\Exception;
use Mizan\Client\MizanClient;
use Mizan\Client\Webhook;

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../src/' . strtr(substr($class, strlen('Mizan\\Client\\')), '\\', '/') . '.php';
});
set_error_handler(static fn (int $level, string $text) => throw new ErrorException($text));

const KINDS = [
    Exception\ApiConnectionException::class => 'connection',
    Exception\ApiException::class => 'api',
    Exception\AuthenticationException::class => 'authentication',
    Exception\ForbiddenException::class => 'forbidden',
    Exception\InvalidRequestException::class => 'invalid_request',
    Exception\InvalidWebhookException::class => 'invalid_webhook',
    Exception\NotFoundException::class => 'not_found',
    Exception\RateLimitedException::class => 'rate_limited',
    Exception\ServerException::class => 'server',
    Exception\SignatureException::class => 'signature',
    InvalidArgumentException::class => 'argument',
];

function run(array $operation, array &$pauses): array
{
    $given = $operation['arguments'];
    if ($operation['call'] === 'verify') {
        $event = Webhook::verify(hex2bin($given['body_hex']), $given['signature'], $given['secrets']);
        return ['event' => ['id' => $event->id, 'event' => $event->event, 'intent_uuid' => $event->intentUuid]];
    }
    $options = $operation['client'];
    $client = new MizanClient(
        $options['base_url'],
        $options['api_key'],
        $options['access_token'],
        timeout: $options['timeout'],
        retries: $options['retries'],
        sleep: static function (float $seconds) use (&$pauses): void {
            $pauses[] = $seconds;
        },
    );
    $intent = $operation['call'] === 'retrieve'
        ? $client->retrievePaymentIntent($given['uuid'])
        : $client->createPaymentIntent(
            $given['merchant_reference'],
            $given['amount'],
            description: $given['description'] ?? null,
            returnUrl: $given['return_url'] ?? null,
            customerExternalId: $given['customer_external_id'] ?? null,
            metadata: $given['metadata'] ?? null,
            expiresAt: isset($given['expires_at']) ? new DateTimeImmutable($given['expires_at']) : null,
        );
    $milliseconds = static fn (?DateTimeImmutable $time) => $time === null ? null : (int) $time->format('Uv');
    return ['intent' => [
        'uuid' => $intent->uuid,
        'reference' => $intent->reference,
        'merchant_reference' => $intent->merchantReference,
        'amount' => $intent->amount,
        'currency' => $intent->currency,
        'status' => $intent->status,
        'description' => $intent->description,
        'customer' => ['external_id' => $intent->customer->externalId],
        'return_url' => $intent->returnUrl,
        'metadata' => $intent->metadata === null ? null : (object) $intent->metadata,
        'expires_at' => $milliseconds($intent->expiresAt),
        'checkout_url' => $intent->checkoutUrl,
        'created_at' => $milliseconds($intent->createdAt),
        'updated_at' => $milliseconds($intent->updatedAt),
    ]];
}

$results = [];
foreach (json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR) as $operation) {
    $pauses = [];
    try {
        $results[] = run($operation, $pauses) + ['pauses' => $pauses];
    } catch (Throwable $error) {
        $results[] = [
            'error' => KINDS[$error::class] ?? throw $error,
            'status' => $error->status ?? null,
            'message' => $error->getMessage(),
            'errors' => isset($error->errors) ? (object) $error->errors : null,
            'request_id' => $error->requestId ?? null,
            'retry_after' => $error->retryAfter ?? null,
            'pauses' => $pauses,
        ];
    }
}
echo json_encode($results, JSON_THROW_ON_ERROR);
