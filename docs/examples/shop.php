<?php
declare(strict_types=1);

use Mizan\Client\Exception\InvalidWebhookException;
use Mizan\Client\Exception\NotFoundException;
use Mizan\Client\Exception\SignatureException;
use Mizan\Client\MizanClient;
use Mizan\Client\Webhook;

require __DIR__ . '/vendor/autoload.php';

const ORDERS = ['order-1042' => 25_500, 'order-1043' => 12_000]; // minor units: 25.500 and 12.000 dinar
chdir(__DIR__);
foreach (['intents', 'inbox', 'done', 'paid'] as $table) {
    is_dir($table) || mkdir($table);
}

function mizan(): MizanClient
{
    return new MizanClient(getenv('MIZAN_URL'), getenv('MIZAN_API_KEY'), getenv('MIZAN_ACCESS_TOKEN'));
}

function pay(string $reference): void
{
    $back = getenv('SHOP_URL') . "/orders/$reference";
    // Without a response, the client sends the same request again. A repeat changes nothing: there is one intent.
    $intent = mizan()->createPaymentIntent(
        $reference,
        ORDERS[$reference],
        description: 'Two bags of coffee',
        returnUrl: $back,
    );
    if ($intent->amount !== ORDERS[$reference]) {
        throw new RuntimeException("$reference was created before, with the amount $intent->amount");
    }
    file_put_contents("intents/$reference", $intent->uuid);
    header("Location: {$intent->checkoutUrl}?lang=en");
    answer(303, '');
}

function customer_returns(string $reference): void
{
    if (!is_file("intents/$reference")) {
        answer(404, 'no such order');
        return;
    }
    answer(200, settle(file_get_contents("intents/$reference")));
}

function webhook(): void
{
    $raw = file_get_contents('php://input', length: 65_537); // the raw bytes
    if (strlen($raw) > 65_536) {
        answer(413, 'too large');
        return;
    }
    $secrets = explode(',', getenv('MIZAN_WEBHOOK_SECRETS')); // the new one, and for a day after a roll the old one
    try {
        $event = Webhook::verify($raw, $_SERVER['HTTP_SERVICE_SIGNATURE'] ?? null, $secrets);
    } catch (SignatureException) {
        answer(401, 'bad signature');
        return;
    } catch (InvalidWebhookException) {
        answer(400, 'not an event');
        return;
    }
    if (!preg_match('/\A[A-Za-z0-9_-]{1,100}\z/', $event->id)) {
        answer(400, 'not the name of a file');
        return;
    }
    $name = "$event->id.$event->intentUuid";
    if (!is_file("done/$name")) {
        touch("inbox/$name");
    }
    answer(200, 'ok');
    work_off();
}

function work_off(): void
{
    foreach (array_diff(scandir('inbox'), ['.', '..']) as $name) {
        try {
            settle(explode('.', $name)[1]);
            @rename("inbox/$name", "done/$name"); // another process may have been faster
        } catch (Throwable $error) {
            error_log("$name stays in the inbox: {$error->getMessage()}");
        }
    }
}

/** Called by the webhook, the customer's return and the re-check. */
function settle(string $uuid): string
{
    try {
        $intent = mizan()->retrievePaymentIntent($uuid);
    } catch (NotFoundException) {
        return 'unknown'; // a test delivery: its uuid belongs to no intent
    }
    $reference = $intent->merchantReference;
    $is_right = $intent->amount === (ORDERS[$reference] ?? null) && $intent->currency === 'LYD';
    if ($intent->status === 'succeeded' && !$is_right) {
        error_log("look into $reference: $intent->amount was paid");
    } elseif ($intent->status === 'succeeded' && @fopen("paid/$reference", 'x') !== false) {
        error_log("fulfil $reference"); // the file was not there: it is not fulfilled yet
    }
    return $intent->status;
}

/** Process each unpaid order as if an event had arrived. */
function recheck(): void
{
    foreach (array_diff(scandir('intents'), scandir('paid')) as $reference) {
        touch("inbox/recheck-$reference." . file_get_contents("intents/$reference"));
    }
    work_off();
}

/** Ends the request for the caller; the script continues. */
function answer(int $status, string $text): void
{
    ignore_user_abort(true);
    http_response_code($status);
    header('Content-Type: text/plain');
    header('Content-Length: ' . strlen($text));
    echo $text;
    while (ob_get_level() > 0) {
        ob_end_flush();
    }
    function_exists('fastcgi_finish_request') ? fastcgi_finish_request() : flush();
}

function route(string $method, string $path): void
{
    if ("$method $path" === 'POST /webhooks/mizan') {
        webhook();
    } elseif (!preg_match('#\A/orders/([^/]+)(/pay)?\z#', $path, $found) || !isset(ORDERS[$found[1]])) {
        answer(404, 'no such page');
    } elseif ($method === 'POST' && isset($found[2])) {
        pay($found[1]);
    } elseif ($method === 'GET' && !isset($found[2])) {
        customer_returns($found[1]);
    } else {
        answer(405, 'method not allowed');
    }
}

if (PHP_SAPI === 'cli') {
    recheck();
} else {
    try {
        route($_SERVER['REQUEST_METHOD'], parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
    } catch (Throwable $error) {
        error_log((string) $error);
        answer(500, 'try again');
    }
}
