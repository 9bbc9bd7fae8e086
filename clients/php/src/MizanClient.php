<?php

declare(strict_types=1);

namespace Mizan\Client;

use Mizan\Client\Exception\ApiConnectionException;
use Mizan\Client\Exception\ApiException;
use Mizan\Client\Exception\AuthenticationException;
use Mizan\Client\Exception\ForbiddenException;
use Mizan\Client\Exception\InvalidRequestException;
use Mizan\Client\Exception\NotFoundException;
use Mizan\Client\Exception\RateLimitedException;
use Mizan\Client\Exception\ServerException;

/** Creates and retrieves payment intents. */
final class MizanClient
{
    public const VERSION = '1.0.0';

    private const MAX_RESPONSE_BYTES = 1_048_576;
    private const FIRST_PAUSE_S = 0.5;
    private const MAX_PAUSE_S = 8.0;
    private const MAX_RETRY_AFTER_S = 10;
    private const EXCEPTIONS = [
        401 => AuthenticationException::class,
        403 => ForbiddenException::class,
        404 => NotFoundException::class,
        422 => InvalidRequestException::class,
        429 => RateLimitedException::class,
    ];

    private readonly string $baseUrl;
    private readonly \CurlHandle $curl;
    private readonly \Closure $sleep;

    /**
     * @param string $baseUrl ends in `/api/v1`
     * @param float $timeout the longest time for one try, in seconds
     * @param int $retries how often a request is sent again after no response, 408, 429 or 5xx, with growing pauses
     * @param ?callable(float): mixed $sleep makes the pauses, in seconds; tests replace it
     * @throws \InvalidArgumentException if an argument cannot be used
     */
    public function __construct(
        string $baseUrl,
        #[\SensitiveParameter] private readonly string $apiKey,
        #[\SensitiveParameter] private readonly string $accessToken,
        private readonly float $timeout = 10.0,
        private readonly int $retries = 3,
        ?callable $sleep = null,
    ) {
        if (preg_match('#^https?://#', $baseUrl) !== 1) {
            throw new \InvalidArgumentException('baseUrl must begin with https:// or http://');
        }
        foreach ([$apiKey, $accessToken] as $credential) {
            if (preg_match('/^[!-~]+\z/', $credential) !== 1) {
                throw new \InvalidArgumentException(
                    'apiKey and accessToken must have only visible ASCII characters, and no line feed',
                );
            }
        }
        if ($timeout <= 0 || $retries < 0) {
            throw new \InvalidArgumentException('timeout must be positive, and retries must not be negative');
        }
        $this->baseUrl = rtrim($baseUrl, '/');
        $this->curl = curl_init();
        $this->sleep = $sleep === null
            ? static fn (float $seconds) => usleep((int) ($seconds * 1_000_000))
            : $sleep(...);
    }

    /**
     * Create an intent, or return the one that has this merchantReference.
     *
     * `merchantReference` makes the create idempotent: it can be repeated, and there is one intent. A repeat changes
     * nothing, so compare the amount of the result with your order.
     *
     * @param int $amount minor units: 1000 is one dinar
     * @param ?array<string, string> $metadata
     * @throws ApiException
     * @throws ApiConnectionException
     */
    public function createPaymentIntent(
        string $merchantReference,
        int $amount,
        string $currency = 'LYD',
        ?string $description = null,
        ?string $returnUrl = null,
        ?string $customerExternalId = null,
        ?array $metadata = null,
        ?\DateTimeInterface $expiresAt = null,
    ): PaymentIntent {
        $body = [
            'merchant_reference' => $merchantReference,
            'amount' => $amount,
            'currency' => $currency,
            'description' => $description,
            'return_url' => $returnUrl,
            'customer' => $customerExternalId === null ? null : ['external_id' => $customerExternalId],
            'metadata' => $metadata === null ? null : (object) $metadata, // an empty array would become a list
            'expires_at' => $expiresAt?->format(DATE_RFC3339_EXTENDED),
        ];
        $given = array_filter($body, static fn (mixed $value) => $value !== null);
        return $this->request('POST', '/payment-intents', json_encode($given, JSON_THROW_ON_ERROR));
    }

    /**
     * Return the intent with its current status.
     *
     * @throws ApiException
     * @throws ApiConnectionException
     * @throws \InvalidArgumentException if this is not a uuid
     */
    public function retrievePaymentIntent(string $uuid): PaymentIntent
    {
        if (!PaymentIntent::isUuid($uuid)) {
            throw new \InvalidArgumentException('uuid must be the uuid of an intent');
        }
        return $this->request('GET', "/payment-intents/$uuid", null);
    }

    /** Send the request until there is a response that is not worth a retry. All tries have one request id. */
    private function request(string $method, string $path, ?string $body): PaymentIntent
    {
        $requestId = bin2hex(random_bytes(16));
        for ($retry = 0;; $retry++) {
            try {
                return $this->send($method, $path, $body, $requestId);
            } catch (ApiException | ApiConnectionException $error) {
                if ($retry === $this->retries || !self::isRetried($error)) {
                    throw $error;
                }
                ($this->sleep)(self::pauseBefore($retry, $error));
            }
        }
    }

    private function send(string $method, string $path, ?string $body, string $requestId): PaymentIntent
    {
        $headers = [];
        $content = '';
        $isTooLarge = false;
        curl_reset($this->curl); // keeps the connection
        curl_setopt_array($this->curl, [
            CURLOPT_URL => $this->baseUrl . $path,
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => [
                'Accept: application/json',
                "Authorization: Bearer {$this->accessToken}",
                "X-API-Key: {$this->apiKey}",
                "X-Request-Id: $requestId",
                'User-Agent: mizan-client-php/' . self::VERSION,
                ...($body === null ? [] : ['Content-Type: application/json', 'Expect:']),
            ],
            CURLOPT_FOLLOWLOCATION => false, // following a redirect would send the credentials elsewhere
            CURLOPT_TIMEOUT_MS => max(1, (int) ($this->timeout * 1000)),
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$headers): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $headers[strtolower($name)] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $chunk) use (&$content, &$isTooLarge): int {
                $content .= $chunk;
                $isTooLarge = strlen($content) > self::MAX_RESPONSE_BYTES; // larger than any response of the API
                return $isTooLarge ? 0 : strlen($chunk);
            },
        ]);
        if ($body !== null) {
            curl_setopt($this->curl, CURLOPT_POSTFIELDS, $body);
        }
        if (curl_exec($this->curl) === false && !$isTooLarge) {
            throw new ApiConnectionException($requestId, curl_error($this->curl));
        }
        $status = curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE);
        return self::readIntent($status, $headers, $isTooLarge ? '' : $content, $requestId);
    }

    /**
     * Return the intent in a response. Throws the exception that the response stands for.
     *
     * @param array<string, string> $headers
     */
    private static function readIntent(int $status, array $headers, string $content, string $sentId): PaymentIntent
    {
        $requestId = ($headers['x-request-id'] ?? '') ?: $sentId;
        $body = json_decode($content);
        if ($status !== 200 && $status !== 201) {
            $class = $status >= 500 ? ServerException::class : (self::EXCEPTIONS[$status] ?? ApiException::class);
            $retryAfter = $headers['retry-after'] ?? '';
            throw new $class(
                $status,
                self::readMessage($status, $body),
                self::readErrors($body),
                $requestId,
                preg_match('/^\d{1,9}\z/', $retryAfter) === 1 ? (int) $retryAfter : null,
            );
        }
        return PaymentIntent::parse($body)
            ?? throw new ApiException($status, 'The response is not a payment intent.', [], $requestId);
    }

    private static function readMessage(int $status, mixed $body): string
    {
        foreach ([$body->message ?? null, $body->error ?? null] as $text) {
            if (is_string($text) && $text !== '') {
                return $text;
            }
        }
        return "The API responded with status $status.";
    }

    /** @return array<string, list<string>> */
    private static function readErrors(mixed $body): array
    {
        $errors = $body->errors ?? null;
        $lists = array_filter($errors instanceof \stdClass ? (array) $errors : [], is_array(...));
        return array_map(static fn (array $problems) => array_values(array_filter($problems, is_string(...))), $lists);
    }

    private static function isRetried(ApiException|ApiConnectionException $error): bool
    {
        return $error instanceof ApiConnectionException
            || in_array($error->status, [408, 429], true)
            || $error->status >= 500;
    }

    /** Return the pause before a retry in seconds: it doubles, is random between half and all, and obeys Retry-After. */
    private static function pauseBefore(int $retry, ApiException|ApiConnectionException $error): float
    {
        $longest = min(self::FIRST_PAUSE_S * 2 ** $retry, self::MAX_PAUSE_S);
        $asked = $error instanceof ApiException ? min($error->retryAfter ?? 0, self::MAX_RETRY_AFTER_S) : 0;
        return max($longest * (0.5 + mt_rand() / mt_getrandmax() / 2), (float) $asked);
    }
}
